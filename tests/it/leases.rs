//! Leases: of several holders, one has the lease.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{ACME, Answer, BETA, SYSTEM, TestApi, Walls, until};

const PATH: &str = "/leases/dns";

async fn acquire(api: &TestApi, holder: &str, seconds: i32) -> Answer {
    let body = json!({"holder": holder, "duration_seconds": seconds});
    api.put(PATH, body).await
}

fn time(lease: &Value, member: &str) -> DateTime<Utc> {
    lease[member].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_lease_belongs_to_its_holder_until_it_is_released() {
    let api = TestApi::spawn().await;
    assert_eq!(api.get(PATH).await.problem(), (404, "NTF-001"));
    let acquired = acquire(&api, "first", 60).await;
    assert_eq!(acquired.status, 200, "{}", acquired.body);
    let acquired = acquired.body;
    assert_eq!(acquired["kind"], "Lease");
    assert_eq!(acquired["name"], "dns");
    assert_eq!(acquired["holder"], "first");
    assert_eq!(acquired["duration_seconds"], 60);
    assert_eq!(acquired["acquired_time"], acquired["renewed_time"]);
    let lasts = time(&acquired, "expires_time") - time(&acquired, "renewed_time");
    assert_eq!(lasts, TimeDelta::seconds(60));
    assert_eq!(api.get(PATH).await.body, acquired);

    let refused = acquire(&api, "second", 60).await;
    assert_eq!(refused.problem(), (409, "CNF-003"));
    let until = acquired["expires_time"].as_str().unwrap();
    let detail = format!("the lease 'dns' is held by 'first' until {until}");
    assert_eq!(refused.detail(), detail);
    assert_eq!(api.get(PATH).await.body, acquired, "it is as it was");

    let renewed = acquire(&api, "first", 30).await.body;
    assert_eq!(renewed["acquired_time"], acquired["acquired_time"]);
    assert!(time(&renewed, "renewed_time") > time(&acquired, "renewed_time"));
    assert_eq!(renewed["duration_seconds"], 30);

    let stranger = api.delete("/leases/dns?holder=second").await;
    assert_eq!(stranger.problem(), (404, "NTF-001"));
    assert_eq!(api.get(PATH).await.body, renewed);
    assert_eq!(api.delete("/leases/dns?holder=first").await.status, 204);
    assert_eq!(api.get(PATH).await.status, 404);
    assert_eq!(acquire(&api, "second", 60).await.status, 200);
    // Other names are other leases.
    let other = json!({"holder": "first", "duration_seconds": 1});
    assert_eq!(api.put("/leases/dns-2", other).await.status, 200);
    assert_eq!(api.count("SELECT count(*) FROM audit_entries").await, 0);
}

#[tokio::test]
async fn an_expired_lease_can_be_acquired_by_another_holder() {
    let api = TestApi::spawn().await;
    let first = acquire(&api, "first", 1).await.body;
    until("it has expired", async || {
        acquire(&api, "second", 60).await.status == 200
    })
    .await;
    let second = api.get(PATH).await.body;
    assert!(time(&second, "acquired_time") >= time(&first, "expires_time"));
    assert_eq!(acquire(&api, "first", 1).await.status, 409);
}

#[tokio::test]
async fn an_expired_lease_does_not_exist_and_is_removed() {
    let api = TestApi::spawn().await;
    acquire(&api, "first", 1).await;
    let other = json!({"holder": "first", "duration_seconds": 60});
    api.put("/leases/lasting", other).await;
    until("it has expired", async || api.get(PATH).await.status == 404).await;
    let leases = "SELECT count(*) FROM leases";
    assert_eq!(api.count(leases).await, 2);
    let service = hyperfleet_service::app::Service::new(
        api.database.store(),
        std::sync::Arc::new(hyperfleet_domain::EntityRegistry::default()),
        false,
    );
    assert_eq!(service.expire_leases().await.unwrap(), 1);
    assert_eq!(api.count(leases).await, 1);
    assert_eq!(api.get("/leases/lasting").await.status, 200);
}

#[tokio::test]
async fn of_many_simultaneous_holders_one_acquires_the_lease() {
    let api = TestApi::spawn().await;
    for round in 0..5 {
        let path = format!("/leases/round-{round}");
        let mut attempts = JoinSet::new();
        for number in 0..20 {
            let (client, url) = (api.client.clone(), format!("{}{path}", api.base));
            attempts.spawn(async move {
                let body = json!({"holder": format!("copy-{number}"), "duration_seconds": 60});
                let sent = client.put(url).json(&body).send().await.unwrap();
                (sent.status().as_u16(), sent.text().await.unwrap())
            });
        }
        let answers = attempts.join_all().await;
        let holders: Vec<_> = answers
            .iter()
            .filter(|(status, _)| *status == 200)
            .collect();
        assert_eq!(holders.len(), 1, "{answers:?}");
        let statuses: BTreeSet<_> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, BTreeSet::from([200, 409]));
        let lease: Value = serde_json::from_str(&holders[0].1).unwrap();
        assert_eq!(api.get(&path).await.body, lease);
    }
}

#[tokio::test]
async fn leases_of_different_tenants_are_different_leases() {
    let api = TestApi::spawn_for(&[], Walls::Up).await;
    for (caller, holder) in [(ACME, "a"), (BETA, "b"), (SYSTEM, "s")] {
        let caller = api.speaking(caller);
        assert_eq!(acquire(&caller, holder, 60).await.status, 200, "{holder}");
        assert_eq!(acquire(&caller, "other", 60).await.status, 409, "{holder}");
    }
    for (caller, holder) in [(ACME, "a"), (BETA, "b"), (SYSTEM, "s")] {
        let caller = api.speaking(caller);
        assert_eq!(caller.get(PATH).await.body["holder"], holder);
        let release = format!("{PATH}?holder={holder}");
        assert_eq!(caller.delete(&release).await.status, 204);
    }
}

#[tokio::test]
async fn invalid_requests_for_leases_are_refused() {
    let api = TestApi::spawn().await;
    let long = "x".repeat(254);
    let good = json!({"holder": "a", "duration_seconds": 1});
    for (path, body, field) in [
        (PATH, json!({"holder": "a"}), "duration_seconds"),
        (
            PATH,
            json!({"holder": "a", "duration_seconds": 0}),
            "duration_seconds",
        ),
        (
            PATH,
            json!({"holder": "a", "duration_seconds": 3601}),
            "duration_seconds",
        ),
        (
            PATH,
            json!({"holder": "a", "duration_seconds": 1.5}),
            "duration_seconds",
        ),
        (PATH, json!({"duration_seconds": 1}), "holder"),
        (PATH, json!({"holder": "", "duration_seconds": 1}), "holder"),
        (PATH, json!({"holder": 1, "duration_seconds": 1}), "holder"),
        (
            PATH,
            json!({"holder": "a\nb", "duration_seconds": 1}),
            "holder",
        ),
        (
            PATH,
            json!({"holder": long, "duration_seconds": 1}),
            "holder",
        ),
        ("/leases/DNS", good.clone(), "name"),
        ("/leases/dns?dryRun=true", good, "dryRun"),
    ] {
        let answer = api.put(path, body.clone()).await;
        assert_eq!(
            answer.problem(),
            (400, "VAL-000"),
            "{path} {body}: {}",
            answer.body
        );
        assert_eq!(answer.body["errors"].as_array().unwrap().len(), 1, "{body}");
        assert_eq!(answer.body["errors"][0]["field"], field, "{path} {body}");
    }
    let both = api.put(PATH, json!({})).await;
    assert_eq!(both.body["errors"].as_array().unwrap().len(), 2);
    let unnamed = api.delete(PATH).await;
    assert_eq!(unnamed.problem(), (400, "VAL-000"));
    assert_eq!(unnamed.body["errors"][0]["field"], "holder");
    assert_eq!(api.count("SELECT count(*) FROM leases").await, 0);
}

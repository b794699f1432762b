//! Lists of what a tenant sees: what is in them, how much, and where they go on.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use super::{Fleet, kinds};
use crate::support::{ACME, ACME_WEB, BETA, Random, SYSTEM, TestApi, Walls, assert_sound};

#[tokio::test]
async fn totals_are_each_tenants_own() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let tenants = [ACME, ACME_WEB, BETA].map(|headers| api.speaking(headers));
    for (place, tenant) in tenants.iter().enumerate() {
        for number in 0..=place {
            let fleet = Fleet::of(tenant, &format!("fleet-{number}")).await;
            if number > 0 {
                // Finalizing ones are counted only where they are asked for.
                tenant.deleted(&fleet.paths()[2]).await;
            }
        }
    }
    for (place, tenant) in tenants.iter().enumerate() {
        let (all, active) = (place + 1, 1);
        for (list, total) in [
            ("/clusters", all),
            ("/nodepools", all),
            ("/addons", active),
            ("/addons?includeDeleted=true", all),
            ("/resources", 2 * all + active),
            ("/resources?includeDeleted=true", 3 * all),
            ("/resources?kind=Addon", active),
            (
                "/resources?search=name%20like%20'fleet%25'",
                2 * all + active,
            ),
            ("/audit?action=create", 3 * all),
            ("/audit?action=delete", all - 1),
        ] {
            let answer = tenant.get(list).await;
            assert_eq!(answer.body["total"], total, "{place} {list}");
            assert_eq!(answer.items().len(), total, "{place} {list}");
        }
    }
    let system = api.speaking(SYSTEM);
    let all = system.get("/resources?includeDeleted=true").await;
    assert_eq!(all.body["total"], 18);
    assert_sound(&mut api.database.connect().await, &kinds()).await;
}

#[tokio::test]
async fn a_filter_by_a_link_finds_nothing_by_what_is_not_seen() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let ours = Fleet::of(&acme, "ours").await;
    let filter = format!("/addons?ref_type=cluster&ref_target_id={}", ours.cluster);
    assert_eq!(acme.get(&filter).await.column("id"), [&*ours.addon]);
    let nothing = beta.get(&filter).await;
    assert_eq!((nothing.status, &nothing.body["total"]), (200, &json!(0)));
    let nobody = format!(
        "/addons?ref_type=cluster&ref_target_id={}",
        Fleet::of_nobody().cluster
    );
    assert_eq!(beta.get(&nobody).await.body, nothing.body);
}

/// A cluster with so many node pools.
async fn many(api: &TestApi, pools: usize) -> String {
    let cluster = api.cluster("many").await;
    for number in 0..pools {
        api.nodepool(&cluster, &format!("pool-{number}")).await;
    }
    cluster
}

#[tokio::test]
async fn the_place_in_one_tenants_list_is_none_in_anothers() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let tenants = [ACME, ACME_WEB, BETA, SYSTEM].map(|headers| api.speaking(headers));
    for tenant in &tenants[..3] {
        many(tenant, 5).await;
    }
    let random = &mut Random::seeded(5);
    for round in 0..60 {
        let list = random.pick(&[
            "/nodepools?order=name",
            "/resources?order=created_time",
            "/nodepools?search=name%20like%20'pool%25'",
            "/resources?order=owner_id,name%20desc",
        ]);
        let (from, to) = (random.below(4), random.below(4));
        let page = tenants[from].get(&format!("{list}&size=2")).await;
        let token = page.body["continue"].as_str().unwrap();
        let next = tenants[to]
            .get(&format!("{list}&size=2&continue={token}"))
            .await;
        if from == to {
            assert_eq!(next.status, 200, "{round}: {}", next.body);
            assert_ne!(next.column("id"), page.column("id"));
        } else {
            assert_eq!(next.problem(), (400, "VAL-000"), "{round}: {}", next.body);
            let says = "belongs to another list";
            assert!(next.body.to_string().contains(says), "{}", next.body);
        }
    }
}

/// Tokens are not signed: an invented one leads to a position in the caller's own list.
#[tokio::test]
async fn a_token_made_up_from_anothers_place_leads_nowhere_else() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    many(&acme, 5).await;
    many(&beta, 5).await;
    for list in [
        "/nodepools?order=name",
        "/resources?order=created_time%20desc",
    ] {
        let decoded = async |tenant: &TestApi| -> Value {
            let page = tenant.get(&format!("{list}&size=2")).await;
            let token = BASE64.decode(page.body["continue"].as_str().unwrap());
            serde_json::from_slice(&token.unwrap()).unwrap()
        };
        let (mut ours, theirs) = (decoded(&acme).await, decoded(&beta).await);
        ours[3] = theirs[3].clone();
        let forged = BASE64.encode(ours.to_string());
        let page = acme
            .get(&format!("{list}&continue={forged}&size=100"))
            .await;
        assert_eq!(page.status, 200, "{}", page.body);
        for item in page.items() {
            assert_eq!(item["tenancy"], json!({"org": "acme"}), "{list}");
        }
        assert_eq!(page.body["total"], acme.get(list).await.body["total"]);
    }
}

#[tokio::test]
async fn every_change_is_only_in_the_trail_of_its_tenant() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    for tenant in [&acme, &beta] {
        let fleet = Fleet::of(tenant, "same").await;
        let [cluster, _, addon] = fleet.paths();
        let labels = json!({"labels": {"a": "b"}});
        assert_eq!(tenant.patch(&cluster, labels).await.status, 200);
        tenant.deleted(&addon).await;
        tenant.finalize(&addon, &["dns"], 2).await;
        tenant.deleted(&cluster).await;
        let force = json!({"reason": "for a test"});
        let path = format!("{cluster}/force-delete");
        let forced = tenant.post(&path, force);
        assert_eq!(forced.await.status, 204);
    }
    for (tenant, org) in [(&acme, "acme"), (&beta, "beta")] {
        let trail = tenant.get("/audit?size=100").await;
        for entry in trail.items() {
            assert_eq!(entry["tenancy"], json!({"org": org}), "{entry}");
        }
        assert_eq!(
            trail.column("action"),
            [
                "force_delete",
                "force_delete",
                "delete",
                "delete",
                "hard_delete",
                "delete",
                "patch",
                "create",
                "create",
                "create",
            ]
        );
        assert_eq!(trail.body["total"], 10);
    }
    let actor = acme.get("/audit").await.items()[0]["actor"].clone();
    for filter in [
        format!("actor={}", actor.as_str().unwrap().replace('@', "%40")),
        "kind=Cluster".to_owned(),
        "since=2000-01-01T00:00:00Z".to_owned(),
        "until=2100-01-01T00:00:00Z".to_owned(),
    ] {
        let trail = acme.get(&format!("/audit?size=100&{filter}")).await;
        let is_ours = |entry: &Value| entry["tenancy"]["org"] == "acme";
        assert!(trail.items().iter().all(is_ours), "{filter}");
        assert_eq!(trail.body["total"], trail.items().len(), "{filter}");
        assert_ne!(trail.body["total"], 0, "{filter}");
    }
    let theirs = beta.get("/audit").await;
    let id = theirs.items()[0]["resource_id"].as_str().unwrap();
    let none = acme.get(&format!("/audit?resource_id={id}")).await;
    assert_eq!((none.status, &none.body["total"]), (200, &json!(0)));
}

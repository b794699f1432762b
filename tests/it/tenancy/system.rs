//! System identities: adapters and the like, which work for every tenant. They see everything, and
//! write nothing but reports.

use serde_json::json;

use super::{Fleet, calls, kinds, stored_rows};
use crate::support::{ACME, Answer, BETA, SYSTEM, TestApi, Walls, assert_sound};

const REFUSED: &str = "system identities may only write status and conditions";

fn assert_refused(answer: &Answer, at: &str) {
    assert_eq!(answer.problem(), (403, "AUZ-001"), "{at}: {}", answer.body);
    assert_eq!(answer.detail(), REFUSED, "{at}");
}

#[tokio::test]
async fn they_read_and_report_on_every_route_and_do_nothing_else() {
    for walls in [Walls::Up, Walls::Down] {
        let api = TestApi::spawn_for(&kinds(), walls).await;
        let fleets = [
            Fleet::of(&api.speaking(ACME), "same").await,
            Fleet::of(&api.speaking(BETA), "same").await,
        ];
        let system = api.speaking(&[SYSTEM[0], ("x-org", "not a name")]);
        let before = api.count("SELECT count(*) FROM audit_entries").await;
        for call in calls(&api).await {
            for fleet in &fleets {
                for path in call.paths(fleet, fleet) {
                    let at = format!("{} {path}", call.method);
                    let answer = call.send(&system, &path, call.body(&api, fleet)).await;
                    match &*call.method {
                        "GET" => assert_eq!(answer.status, 200, "{at}: {}", answer.body),
                        "PUT" => assert_eq!(answer.status, 201, "{at}: {}", answer.body),
                        _ => assert_refused(&answer, &at),
                    }
                }
            }
        }
        assert_eq!(
            api.count("SELECT count(*) FROM audit_entries").await,
            before
        );
        let list = system.get("/resources?size=100").await;
        assert_eq!(list.body["total"], 6);
        assert_eq!(list.items().len(), 6);
        let trail = system.get("/audit").await;
        assert_eq!(trail.body["total"], 6);
        assert_sound(&mut api.database.connect().await, &kinds()).await;
    }
}

#[tokio::test]
async fn permissions_are_checked_before_anything_is_read() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let system = api.speaking(SYSTEM);
    let nobody = Fleet::of_nobody();
    for call in calls(&api).await {
        if ["GET", "PUT"].contains(&&*call.method) {
            continue;
        }
        for path in call.paths(&nobody, &nobody) {
            for body in ["", "{", "[]", "{\"tenancy\":{}}", "\0"] {
                let answer = system.send_bytes(&call.method, &path, body).await;
                assert_refused(&answer, &format!("{} {path} {body:?}", call.method));
            }
        }
    }
    let absent = system.get(&nobody.paths()[0]).await;
    assert_eq!(absent.problem(), (404, "NTF-001"));
}

#[tokio::test]
async fn their_last_word_removes_what_tenants_have_deleted() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, system) = (api.speaking(ACME), api.speaking(SYSTEM));
    let beta = api.speaking(BETA);
    let ours = Fleet::of(&acme, "same").await;
    Fleet::of(&beta, "same").await;
    let others = stored_rows(&api, "beta").await;
    let [cluster, pool, addon] = ours.paths();
    acme.deleted(&addon).await;
    acme.deleted(&cluster).await;
    for path in [&addon, &pool, &cluster] {
        system.finalize(path, &["dns"], 2).await;
        assert_eq!(acme.get(path).await.status, 404, "{path}");
    }
    // Removed by a report, and in the tenant's trail all the same, as is who did it.
    let trail = acme.get("/audit?action=hard_delete").await;
    assert_eq!(trail.body["total"], 3);
    for entry in trail.items() {
        assert_eq!(entry["tenancy"], json!({"org": "acme"}), "{entry}");
    }
    assert_eq!(stored_rows(&api, "beta").await, others);
    assert_eq!(acme.get("/resources").await.body["total"], 0);
    assert_eq!(beta.get("/resources").await.body["total"], 3);
    assert_sound(&mut api.database.connect().await, &kinds()).await;
}

#[tokio::test]
async fn tenants_report_on_what_is_theirs() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let acme = api.speaking(ACME);
    let ours = Fleet::of(&acme, "ours").await;
    for path in ours.paths() {
        let accepted = acme.report(&path, "other", 1, &[]).await;
        assert_eq!(accepted.status, 201, "{path}");
        let reports = acme.get(&format!("{path}/statuses")).await;
        assert_eq!(reports.column("adapter"), ["dns", "other"]);
    }
    let path = &ours.paths()[0];
    let nobodys = api.report(path, "other", 1, &[]).await;
    assert_eq!(nobodys.problem(), (403, "AUZ-001"));
}

//! The past belongs to the tenants to whom the resource belongs, or belonged last.

use serde_json::json;

use super::{kinds, text};
use crate::support::{ACME, ACME_WEB, BETA, SYSTEM, TestApi, Walls};

#[tokio::test]
async fn no_tenant_sees_the_past_of_another() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let acme = api.speaking(ACME);
    let existing = acme.make("/sites", "Site", "kept").await;
    let gone = acme.make("/sites", "Site", "gone").await;
    let rack = acme.make(&format!("{gone}/racks"), "Rack", "r").await;
    let there = text(api.clock.now());
    api.clock.advance(1);
    acme.deleted(&gone).await;
    let forced = json!({"reason": "test"});
    let forced = acme.post(&format!("{gone}/force-delete"), forced).await;
    assert_eq!(forced.status, 204);
    for path in [&existing, &gone, &rack] {
        let tombstone = if *path == existing { 200 } else { 410 };
        for (suffix, status) in [
            ("/history".to_owned(), 200),
            ("/events".to_owned(), 200),
            ("?generation=1".to_owned(), 200),
            (format!("?at={there}"), 200),
            ("?includeDeleted=true".to_owned(), tombstone),
        ] {
            let path = format!("{path}{suffix}");
            for (tenant, expected) in [
                (ACME, status),
                (SYSTEM, status),
                (BETA, 404),
                (ACME_WEB, 404),
            ] {
                let answer = api.speaking(tenant).get(&path).await;
                assert_eq!(
                    answer.status, expected,
                    "{tenant:?} {path}: {}",
                    answer.body
                );
            }
        }
    }
    for (tenant, expected) in [(ACME, 3), (SYSTEM, 3), (BETA, 0), (ACME_WEB, 0)] {
        let answer = api
            .speaking(tenant)
            .get(&format!("/resources?at={there}"))
            .await;
        assert_eq!(
            answer.body["total"], expected,
            "{tenant:?}: {}",
            answer.body
        );
    }
    let racks = format!("{gone}/racks?at={there}");
    assert_eq!(acme.get(&racks).await.body["total"], 1);
    assert_eq!(api.speaking(BETA).get(&racks).await.status, 404);
}

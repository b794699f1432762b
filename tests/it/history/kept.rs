//! What retention removes is not known any more, and answers say so.

use serde_json::json;

use super::{kinds, text};
use crate::support::{Problem as _, TestApi};

#[tokio::test]
async fn what_retention_has_removed_is_named_in_small_steps() {
    let api = TestApi::spawn_with(&kinds()).await;
    let store = api.database.store();
    let mut times = vec![api.clock.now()];
    let path = api.make("/sites", "Site", "a").await;
    for size in 1..=8 {
        api.clock.advance(10);
        times.push(api.clock.now());
        let body = json!({"spec": {"size": size}});
        assert_eq!(api.patch(&path, body).await.status, 200);
    }
    api.clock.advance(10);
    let late = api.make("/sites", "Site", "late").await;
    let history = api.get(&format!("{path}/history?size=100")).await;
    assert_eq!(history.body["total"], 9);
    let all = history.items();
    for removed in [2, 4, 6] {
        let mut session = store.session().await.unwrap();
        let count = session.db().delete_changes_before(times[7], 2).await;
        assert_eq!(count.unwrap(), 2, "no step removes more");
        drop(session);
        // The removed changes made the first generations. The last of these is still known.
        let since = times[removed - 1];
        for (index, at) in times.iter().enumerate() {
            for asked in [
                format!("{path}?at={}", text(*at)),
                format!("/sites?at={}", text(*at)),
            ] {
                let answer = api.get(&asked).await;
                if *at < since {
                    assert_eq!((answer.status, answer.code()), (410, "HST-001"), "{asked}");
                    assert!(answer.detail().contains(&text(since)), "{}", answer.body);
                } else {
                    assert_eq!(answer.status, 200, "{asked}: {}", answer.body);
                    let item = answer.body.get("items").map_or(&answer.body, |i| &i[0]);
                    assert_eq!(item["generation"], json!(index + 1), "{asked}");
                }
            }
        }
        for generation in 1..=9_usize {
            let answer = api.get(&format!("{path}?generation={generation}")).await;
            if generation < removed {
                assert_eq!((answer.status, answer.code()), (404, "HST-002"));
            } else {
                assert_eq!(answer.status, 200, "{}", answer.body);
            }
        }
        let answer = api.get(&format!("{path}/history?size=100")).await;
        assert_eq!(answer.body["complete"], false);
        let items = answer.items();
        assert_eq!(items.len(), 10 - removed);
        let (oldest, newer) = items.split_last().unwrap();
        assert_eq!(newer, &all[..9 - removed]);
        // Who made it and when is in the resource itself; the request and the difference are not known any more.
        let mut expected = all[9 - removed].clone();
        for unknown in ["changed", "request_id"] {
            expected.as_object_mut().unwrap().remove(unknown);
        }
        assert_eq!(*oldest, expected);
    }
    let mut session = store.session().await.unwrap();
    let rest = session.db().delete_changes_before(times[7], 2).await;
    assert_eq!(rest.unwrap(), 1);
    let rest = session.db().delete_changes_before(times[7], 2).await;
    assert_eq!(rest.unwrap(), 0);
    drop(session);
    // The history of a later resource is complete: it did not exist before, whatever retention has removed of others.
    let answer = api.get(&format!("{late}?at={}", text(times[0]))).await;
    assert_eq!((answer.status, answer.code()), (404, "NTF-001"));
    let answer = api.get(&format!("{late}/history")).await;
    assert_eq!(answer.body["complete"], true);
}

#[tokio::test]
async fn unknown_generations_and_invalid_times_are_refused() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let answer = api.get(&format!("{path}?generation=2")).await;
    assert_eq!((answer.status, answer.code()), (404, "NTF-002"));
    assert_eq!(
        answer.detail(),
        "this Site has no generation 2: its latest is 1"
    );
    let none = "01890000-0000-7000-8000-000000000000";
    for (asked, status, code) in [
        (format!("{path}?generation=0"), 400, "VAL-000"),
        (format!("{path}?at=friday"), 400, "VAL-000"),
        (
            format!("{path}?generation=1&at=2026-01-01T10:00:00Z"),
            400,
            "VAL-000",
        ),
        (format!("{path}?includeDeleted=maybe"), 400, "VAL-000"),
        ("/sites?at=friday".to_owned(), 400, "VAL-000"),
        (
            "/sites?at=2026-01-01T10:00:00Z&search=generation%3D1".to_owned(),
            400,
            "VAL-000",
        ),
        (
            "/sites?at=2026-01-01T10:00:00Z&watch=true".to_owned(),
            400,
            "VAL-000",
        ),
        (format!("/sites/{none}?generation=1"), 404, "NTF-001"),
        (
            format!("/sites/{none}/racks?at=2026-01-01T10:00:00Z"),
            404,
            "NTF-001",
        ),
        (
            format!("/sites/{none}?at=2026-01-01T10:00:00Z"),
            404,
            "NTF-001",
        ),
        (format!("/sites/{none}/history"), 404, "NTF-001"),
        (format!("/sites/{none}/events"), 404, "NTF-001"),
        ("/sites/none/history".to_owned(), 404, "NTF-001"),
        ("/sites/none/events".to_owned(), 404, "NTF-001"),
        (format!("{path}/history?size=0"), 400, "VAL-000"),
    ] {
        let answer = api.get(&asked).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{asked}");
    }
}

#[tokio::test]
async fn a_change_with_a_time_ahead_keeps_no_later_one() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let change = async |size: i32| {
        api.clock.advance(10);
        let body = json!({"spec": {"size": size}});
        assert_eq!(api.patch(&path, body).await.status, 200);
    };
    for size in 1..=4 {
        change(size).await;
    }
    let ahead = "WITH ahead AS (UPDATE changes SET at = at + interval '10 years'
                                WHERE position = (SELECT min(position) FROM changes) RETURNING 1)
                 SELECT count(*) FROM ahead";
    assert_eq!(api.count(ahead).await, 1);
    api.clock.advance(10);
    let before = api.clock.now();
    change(5).await;
    let mut session = api.database.store().session().await.unwrap();
    let removed = session.db().delete_changes_before(before, 100).await;
    assert_eq!(removed.unwrap(), 5);
    drop(session);
    // The time ahead is not the one from which on all is known.
    let answer = api.get(&format!("{path}?at={}", text(before))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["generation"], 5);
}

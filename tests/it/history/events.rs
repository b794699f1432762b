//! The events of complete lives.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{TABLE_SCANS, kinds};
use crate::support::{TestApi, still, until};

/// One line for each event, the oldest first.
fn table(items: &[Value]) -> String {
    let mut table = String::new();
    for item in items.iter().rev() {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let time = text(&item["time"]);
        let (_, clock) = time.split_once('T').unwrap();
        let moved = &item["condition"];
        let of_condition = match moved.as_object() {
            None => String::new(),
            Some(_) => format!(
                " {} {}→{} {}s {}",
                text(&moved["type"]),
                text(&moved["from"]),
                text(&moved["to"]),
                moved["duration_seconds"],
                text(&moved["reason"]),
            ),
        };
        let reason = item["reason"].as_str().map(|r| format!(" ({r})"));
        let (kind, adapter) = (text(&item["type"]), text(&item["adapter"]));
        let generation = &item["generation"];
        let reason = reason.unwrap_or_default();
        writeln!(
            table,
            "{clock} g{generation} {kind}{of_condition}{reason} {adapter}"
        )
        .unwrap();
    }
    table
}

const LIFE: &str = "\
10:00:00Z g1 created -
10:00:10Z g1 condition DnsSuccessful -→True nulls - dns
10:00:20Z g1 condition NetSuccessful -→False nulls - net
10:00:40Z g1 condition Reconciled False→True 40.0s ReconciledAll net
10:00:40Z g1 condition LastKnownReconciled False→True 40.0s AllAdaptersReconciled net
10:00:40Z g1 condition NetSuccessful False→True 20.0s - net
10:00:50Z g2 changed -
10:00:50Z g2 condition Reconciled True→False 10.0s ReconciledMissingAdapters -
10:01:10Z g2 condition Reconciled False→True 20.0s ReconciledAll net
10:01:20Z g2 condition Reconciled True→False 10.0s ReconciledMissingAdapters net
10:01:20Z g2 condition LastKnownReconciled True→False 40.0s AdapterReportedNotAvailable net
10:01:20Z g2 condition NetSuccessful True→False 40.0s - net
10:01:30Z g3 deletion_requested -
10:01:50Z g3 removed (net is gone) -
";

#[tokio::test]
async fn a_complete_life_is_a_list_of_events() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let pause = || api.clock.advance(10);
    pause();
    api.report(&path, "dns", 1, &[]).await;
    pause();
    // Another message is no event, and neither is a report that repeats what is known.
    api.report(&path, "net", 1, &[("Available", "False")]).await;
    pause();
    api.report(&path, "net", 1, &[("Available", "False")]).await;
    pause();
    api.report(&path, "net", 1, &[]).await;
    pause();
    api.patch(&path, json!({"spec": {"size": 2}})).await;
    pause();
    api.report(&path, "dns", 2, &[]).await;
    pause();
    api.report(&path, "net", 2, &[]).await;
    pause();
    api.report(&path, "net", 2, &[("Available", "False")]).await;
    pause();
    api.deleted(&path).await;
    pause();
    api.report(&path, "dns", 3, &[("Finalized", "True")]).await;
    pause();
    let reason = json!({"reason": "net is gone"});
    let forced = api.post(&format!("{path}/force-delete"), reason).await;
    assert_eq!(forced.status, 204);
    let answer = api.get(&format!("{path}/events?size=100")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["complete"], true);
    assert_eq!(answer.body["kind"], "EventList");
    let items = answer.items();
    assert_eq!(answer.body["total"], json!(items.len()));
    assert_eq!(table(items), LIFE);
    assert!(
        items
            .iter()
            .all(|item| item["actor"] == "system@hyperfleet.local")
    );
    let mut paged = Vec::new();
    for page in 1..=items.len() {
        let answer = api.get(&format!("{path}/events?size=1&page={page}")).await;
        paged.extend(answer.items().to_vec());
    }
    assert_eq!(paged, items);
    let behind = api.get(&format!("{path}/events?page=100")).await;
    assert_eq!((behind.status, behind.items().len()), (200, 0));
    assert_eq!(behind.body["total"], json!(items.len()));
}

/// The resource `$1` flaps for a long time.
const FLAPPING: &str = "INSERT INTO changes (at, resource_id, kind, action, generation, cause, revision, conditions)
     SELECT r.created_at + n * interval '1 second', r.id, r.kind, 'modified', 1, 'dns', n,
            jsonb_set(r.conditions, '{0,status}', CASE n % 2 WHEN 0 THEN '\"False\"'::jsonb ELSE '\"True\"' END)
     FROM resources r, generate_series(1, 5000) n WHERE r.id = $1";
const ENTRIES_READ: &str =
    "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'changes'";
const SCANS: &str =
    "SELECT (seq_scan + idx_scan)::bigint FROM pg_stat_user_tables WHERE relname = 'changes'";
/// Each step that is read or counted takes an entry for its change, and one for the change after it.
const ENTRIES_MAX: i64 = 2 * 1_000 + 100;

#[tokio::test]
async fn a_page_of_history_reads_only_its_own_changes() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let id: uuid::Uuid = path.rsplit('/').next().unwrap().parse().unwrap();
    let mut connection = api.database.connect().await;
    let flapping = sqlx::query(FLAPPING).bind(id);
    flapping.execute(&mut connection).await.unwrap();
    let analyze = sqlx::raw_sql("VACUUM ANALYZE changes");
    analyze.execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let read = async || (api.count(SCANS).await, api.count(ENTRIES_READ).await);
    let before = still(&read).await;
    let scans = api.count(TABLE_SCANS).await;
    let answer = api.get(&format!("{path}/events")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = answer.items();
    assert_eq!(items.len(), 20);
    assert_eq!(answer.body["total"], 1_000, "counted so far only");
    assert!(items.iter().all(|item| item["adapter"] == "dns"));
    let lasted = &items[1]["condition"]["duration_seconds"];
    assert_eq!(*lasted, 1.0, "{}", items[1]);
    until("the counters are published", async || {
        read().await.0 > before.0
    })
    .await;
    let entries = read().await.1 - before.1;
    assert!(entries <= ENTRIES_MAX, "{entries}");
    assert_eq!(api.count(TABLE_SCANS).await, scans);
    // Each later page counts on from its own first event, and the last one knows the number.
    let page = async |number: u32| {
        let page = format!("{path}/events?size=100&page={number}");
        api.get(&page).await
    };
    assert_eq!(page(2).await.body["total"], 1_100);
    let last = page(51).await;
    assert_eq!(last.body["total"], 5_001);
    assert_eq!(last.items().len(), 1);
    assert_eq!(last.items()[0]["type"], "created");
}

/// The events without those of conditions, the oldest first: type, generation, caller.
async fn declared(api: &TestApi, path: &str) -> Vec<String> {
    let answer = api.get(&format!("{path}/events?size=100")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["total"], json!(answer.items().len()));
    let items = answer.items().iter().rev();
    let items = items.filter(|item| item["condition"].is_null());
    items
        .map(|item| {
            let text = |name: &str| item[name].as_str().unwrap_or("-").to_owned();
            assert!(item["request_id"].is_string(), "{item}");
            format!("{} g{} {}", text("type"), item["generation"], text("actor"))
        })
        .collect()
}

const SYSTEM: &str = "system@hyperfleet.local";

#[tokio::test]
async fn a_deletion_that_removes_at_once_comes_before_the_removal() {
    let api = TestApi::spawn_with(&kinds()).await;
    let site = api.make("/sites", "Site", "a").await;
    let alone = api.make(&format!("{site}/racks"), "Rack", "r").await;
    let body = json!({"spec": {"size": 2}});
    assert_eq!(api.patch(&alone, body).await.status, 200);
    let below = api.make(&format!("{site}/racks"), "Rack", "s").await;
    api.deleted(&alone).await;
    api.clock.advance(1);
    // A cascade: in the transaction of the site.
    api.deleted(&site).await;
    let life = |generations: i32| {
        let mut events = vec![format!("created g1 {SYSTEM}")];
        for generation in 2..=generations {
            events.push(format!("changed g{generation} {SYSTEM}"));
        }
        events.push(format!("deletion_requested g{} {SYSTEM}", generations + 1));
        events
    };
    for (path, generations) in [(alone, 2), (below, 1)] {
        let events = declared(&api, &path).await;
        let (removal, before) = events.split_last().unwrap();
        assert_eq!(before, life(generations), "{path}");
        assert!(removal.starts_with("removed g"), "{removal}");
    }
    assert_eq!(declared(&api, &site).await, life(1));
    let forced = json!({"reason": "gone"});
    let forced = api.post(&format!("{site}/force-delete"), forced).await;
    assert_eq!(forced.status, 204);
    let mut expected = life(1);
    expected.push(format!("removed g2 {SYSTEM}"));
    assert_eq!(declared(&api, &site).await, expected);
}

#[tokio::test]
async fn the_trail_has_what_retention_has_removed() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    for size in [1, 2] {
        let body = json!({"spec": {"size": size}});
        assert_eq!(api.patch(&path, body).await.status, 200);
    }
    let expected = [
        format!("created g1 {SYSTEM}"),
        format!("changed g2 {SYSTEM}"),
        format!("changed g3 {SYSTEM}"),
    ];
    assert_eq!(declared(&api, &path).await, expected);
    // Once, and in the same order.
    let future = "9999-01-01T00:00:00Z"
        .parse::<chrono::DateTime<chrono::Utc>>()
        .unwrap();
    for count in 1..=3 {
        let mut session = api.database.store().session().await.unwrap();
        let removed = session.db().delete_changes_before(future, 1).await;
        assert_eq!(removed.unwrap(), 1, "{count}");
        drop(session);
        assert_eq!(declared(&api, &path).await, expected, "{count}");
    }
}

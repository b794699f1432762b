//! The events of whole lives.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::kinds;
use crate::support::TestApi;

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
async fn a_whole_life_is_a_list_of_events() {
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

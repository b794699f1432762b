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
    let expected = "PIN\n";
    assert_eq!(table(items), expected);
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

//! What is worked on, when, and what is reported.

use std::time::Duration;

use anyhow::anyhow;
use hyperfleet_adapter::{Finding, ReconcileOutcome, Report, Settings};
use serde_json::json;

use super::{Noting, cart_and_wheel, is_reconciled, quick, service, start, until_reconciled, well};
use crate::support::{TestApi, until};

/// Longer than the poll: what did not happen by then does not happen.
const A_WHILE: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_resource_is_worked_on_from_its_creation_to_its_end() {
    let api = service().await;
    let adapter = Noting::content();
    let running = start(&api, quick(&["carts", "wheels"]), &adapter);
    let (cart, wheel) = cart_and_wheel(&api).await;
    api.patch(&wheel, json!({"spec": {"spokes": 8}})).await;
    until("the change is reported", async || {
        adapter
            .calls()
            .iter()
            .any(|call| call.0.ends_with(&wheel) && call.1 == 2)
    })
    .await;
    until_reconciled(&api, &wheel).await;
    api.deleted(&cart).await;
    until("both are gone", async || {
        !api.has(&cart).await && !api.has(&wheel).await
    })
    .await;
    running.stop().await;
    let of_wheel = adapter.calls();
    let of_wheel = of_wheel.iter().filter(|call| call.0.ends_with(&wheel));
    let seen: Vec<_> = of_wheel.map(|call| (call.1, call.2, call.3)).collect();
    assert_eq!(seen.first(), Some(&(1, false, Some(1))));
    assert!(seen.iter().any(|call| call.0 == 3 && call.1), "{seen:?}");
}

#[tokio::test]
async fn unchanged_resources_cause_no_work() {
    let api = service().await;
    let adapter = Noting::content();
    let running = start(&api, quick(&["carts", "wheels"]), &adapter);
    let (cart, wheel) = cart_and_wheel(&api).await;
    let before = (adapter.calls().len(), api.get(&cart).await.body);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(adapter.calls().len(), before.0);
    assert_eq!(api.get(&cart).await.body, before.1);
    // The cart's change reaches the wheel, too.
    let calls = adapter.calls_of(&wheel);
    api.patch(&cart, json!({"spec": {"load": 1}})).await;
    until("the wheel was worked on", async || {
        let all = adapter.calls();
        let of_wheel = all.iter().filter(|call| call.0.ends_with(&wheel));
        of_wheel.skip(calls).any(|call| call.3 == Some(2))
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn an_adapter_that_is_not_content_is_asked_when_it_says_so() {
    let api = service().await;
    let adapter = Noting::answering(|work| {
        let report = Report::new(Finding::no("Rolling", "it takes a while"));
        let again = Duration::from_millis(500);
        Ok(match work.resource.spec()["is_done"].as_bool() {
            Some(true) => ReconcileOutcome::reported(well(work)),
            _ => ReconcileOutcome::again_after(report, again),
        })
    });
    let running = start(&api, quick(&["carts"]), &adapter);
    let cart = api.make("/carts", "Cart", "cart").await;
    until("it was asked three times", async || {
        adapter.calls_of(&cart) >= 3
    })
    .await;
    let asked = adapter.calls_of(&cart);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let later = adapter.calls_of(&cart) - asked;
    assert!((1..=3).contains(&later), "twice a second: {later}");
    // Three times the same was reported once.
    let reports = api.get(&format!("{cart}/statuses")).await.body;
    let report = &reports["items"][0];
    assert_eq!(report["created_time"], report["last_report_time"]);
    assert!(!is_reconciled(&api, &cart).await);
    // A change does not wait for that.
    api.patch(&cart, json!({"spec": {"is_done": true}})).await;
    until_reconciled(&api, &cart).await;
    running.stop().await;
}

#[tokio::test]
async fn a_failure_or_panic_is_retried_and_delays_no_other() {
    let api = service().await;
    let adapter = Noting::answering(|work| match work.resource.name.as_str() {
        "fails" => Err(anyhow!("no such thing")),
        "panics" if work.resource.generation == 1 => panic!("on purpose"),
        _ => Ok(ReconcileOutcome::reported(well(work))),
    });
    let running = start(&api, quick(&["carts"]), &adapter);
    let fails = api.make("/carts", "Cart", "fails").await;
    let panics = api.make("/carts", "Cart", "panics").await;
    let works = api.make("/carts", "Cart", "works").await;
    until_reconciled(&api, &works).await;
    until("both are retried", async || {
        adapter.calls_of(&fails) > 1 && adapter.calls_of(&panics) > 1
    })
    .await;
    tokio::time::sleep(A_WHILE).await;
    assert!(adapter.calls_of(&fails) < 4, "it is listed all the while");
    // News are a reason to try at once.
    api.patch(&panics, json!({"spec": {"a": 1}})).await;
    until_reconciled(&api, &panics).await;
    running.stop().await;
}

/// The statuses of the report on a resource, and the message of `Health`.
async fn failure(api: &TestApi, path: &str) -> Option<(String, String)> {
    let reports = api.get(&format!("{path}/statuses")).await.body;
    let conditions = reports["items"][0]["conditions"].as_array()?;
    let statuses = conditions.iter().map(|condition| {
        let (kind, status) = (&condition["type"], &condition["status"]);
        format!("{kind}={status}").replace('"', "")
    });
    let health = conditions.iter().find(|c| c["type"] == "Health")?;
    Some((
        statuses.collect::<Vec<_>>().join(" "),
        health["message"].as_str()?.to_owned(),
    ))
}

#[tokio::test]
async fn an_error_is_reported_once_until_the_work_succeeds() {
    let api = service().await;
    let adapter = Noting::answering(|work| match work.resource.spec()["fail"].as_bool() {
        Some(true) => Err(anyhow!("no quota").context("create a disk")),
        _ => Ok(ReconcileOutcome::reported(well(work))),
    });
    let running = start(&api, quick(&["carts"]), &adapter);
    let cart = api.make("/carts", "Cart", "cart").await;
    until_reconciled(&api, &cart).await;
    api.patch(&cart, json!({"spec": {"fail": true}})).await;
    let expected = (
        "Applied=False Available=False Health=False".to_owned(),
        "create a disk: no quota".to_owned(),
    );
    until("the error is reported", async || {
        failure(&api, &cart).await.as_ref() == Some(&expected)
    })
    .await;
    let calls = adapter.calls_of(&cart);
    let reports = api.get(&format!("{cart}/statuses")).await.body;
    until("it is retried", async || adapter.calls_of(&cart) > calls).await;
    until("the retry has ended", async || {
        adapter.seen(|seen| seen.under_way.is_empty())
    })
    .await;
    let later = api.get(&format!("{cart}/statuses")).await.body;
    assert_eq!(later, reports, "the same error is not reported again");
    api.deleted(&cart).await;
    until("the deletion fails, too", async || {
        failure(&api, &cart)
            .await
            .is_some_and(|(said, _)| said.ends_with("Finalized=False"))
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn errors_of_the_api_are_not_reported_on_resources() {
    let api = service().await;
    let adapter = Noting::answering(|_| {
        let message = "503 no database".to_owned();
        Err(hyperfleet_adapter::Error::Unavailable {
            message,
            again_after: None,
        }
        .into())
    });
    let running = start(&api, quick(&["carts"]), &adapter);
    let cart = api.make("/carts", "Cart", "cart").await;
    until("it is retried", async || adapter.calls_of(&cart) > 1).await;
    assert_eq!(failure(&api, &cart).await, None);
    running.stop().await;
}

#[tokio::test]
async fn many_are_worked_on_at_a_time_and_none_twice() {
    let api = service().await;
    let mut carts = Vec::new();
    for number in 0..230 {
        carts.push(api.make("/carts", "Cart", &format!("cart-{number}")).await);
    }
    let adapter = Noting::content().slow(Duration::from_millis(30));
    let workers = 8;
    let settings = Settings {
        workers,
        ..quick(&["carts"])
    };
    let running = start(&api, settings, &adapter);
    for cart in &carts {
        until_reconciled(&api, cart).await;
    }
    running.stop().await;
    let (most, has_overlapped) = adapter.seen(|seen| (seen.most, seen.has_overlapped));
    assert_eq!((most, has_overlapped), (workers, false));
    assert_eq!(adapter.calls().len(), carts.len(), "each once");
}

#[tokio::test]
async fn a_kind_can_be_narrowed_by_a_search() {
    let api = service().await;
    let adapter = Noting::content();
    let mut settings = quick(&["carts"]);
    settings.kinds[0].search = Some("labels.shard = '1' or labels.shard = '2'".to_owned());
    let running = start(&api, settings, &adapter);
    let other = api.make("/carts", "Cart", "other").await;
    let mine = api.make("/carts", "Cart", "mine").await;
    api.patch(&mine, json!({"labels": {"shard": "2"}})).await;
    until_reconciled(&api, &mine).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(adapter.calls_of(&other), 0);
    running.stop().await;
}

//! The metrics. The program chooses their destination.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

/// A resource was worked on: `reported`, `unchanged`, `gone`, `failed`.
pub(crate) fn reconciled(kind: &str, outcome: &'static str, took: Duration) {
    let kind = kind.to_owned();
    counter!("hyperfleet_adapter_reconciles_total", "kind" => kind.clone(), "outcome" => outcome)
        .increment(1);
    histogram!("hyperfleet_adapter_reconcile_duration_seconds", "kind" => kind)
        .record(took.as_secs_f64());
}

/// A kind was listed, for changes or entirely.
pub(crate) fn listed(kind: &str, what: &'static str, is_done: bool) {
    let outcome = if is_done { "done" } else { "failed" };
    counter!(
        "hyperfleet_adapter_lists_total",
        "kind" => kind.to_owned(), "what" => what, "outcome" => outcome
    )
    .increment(1);
}

/// Whether a watch shows the changes of a kind.
pub(crate) fn following(kind: &str, is_on: bool) {
    let kind = kind.to_owned();
    gauge!("hyperfleet_adapter_following", "kind" => kind).set(if is_on { 1.0 } else { 0.0 });
}

/// How many resources wait for work, and how many are worked on.
#[allow(clippy::cast_precision_loss, reason = "no queue has as many")]
pub(crate) fn queue(waiting: usize, working: usize) {
    gauge!("hyperfleet_adapter_queue_waiting").set(waiting as f64);
    gauge!("hyperfleet_adapter_queue_working").set(working as f64);
}

pub(crate) fn leads(is_leading: bool) {
    gauge!("hyperfleet_adapter_leading").set(if is_leading { 1.0 } else { 0.0 });
}

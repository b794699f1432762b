//! Metrics of watches.

use std::time::Duration;

use strum::VariantNames as _;

use hyperfleet_domain::watch::WatchEventKind;

const WATCHERS: &str = "hyperfleet_api_watchers";
const EVENTS: &str = "hyperfleet_api_watch_events_total";
const LAG: &str = "hyperfleet_api_watch_lag_seconds";
const CATCH_UPS: &str = "hyperfleet_api_watch_catch_ups_total";
const ENDED: &str = "hyperfleet_api_watches_ended_total";

/// Creates every series, so that the first event is visible as an increase. `reasons` are the reasons for which the
/// service ends a watch.
pub(super) fn count_from_zero(reasons: &[&'static str]) {
    metrics::gauge!(WATCHERS).increment(0.0);
    metrics::gauge!(LAG).set(0.0);
    metrics::counter!(CATCH_UPS).absolute(0);
    for kind in WatchEventKind::VARIANTS {
        metrics::counter!(EVENTS, "type" => *kind).absolute(0);
    }
    for reason in reasons {
        metrics::counter!(ENDED, "reason" => *reason).absolute(0);
    }
}

pub(super) fn joined() {
    metrics::gauge!(WATCHERS).increment(1.0);
}

pub(super) fn left() {
    metrics::gauge!(WATCHERS).decrement(1.0);
}

pub(super) fn sent(kind: WatchEventKind) {
    metrics::counter!(EVENTS, "type" => kind.into_str()).increment(1);
}

pub(super) fn catch_up() {
    metrics::counter!(CATCH_UPS).increment(1);
}

pub(super) fn ended(reason: &'static str) {
    metrics::counter!(ENDED, "reason" => reason).increment(1);
}

/// How long the oldest change that is not yet dispatched has waited.
pub(super) fn lag(time: Duration) {
    metrics::gauge!(LAG).set(time);
}

//! The gauges of what waits to be reconciled: counted in the background, so that a scrape asks the
//! database nothing, and that one which is down is seen with the values it had.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Gauge, Metrics, lock};
use crate::app::{Service, Unreconciled};
use crate::kit::clock::Clock;

pub(super) const PENDING: &str = "hyperfleet_api_resource_pending_reconciliation";
pub(super) const STUCK: &str = "hyperfleet_api_resource_pending_reconciliation_stuck";
pub(super) const STUCK_SECONDS: &str =
    "hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds";
const ERRORS: &str = "hyperfleet_api_reconciliation_refresh_errors_total";
const REFRESHED: &str = "hyperfleet_api_reconciliation_refresh_timestamp_seconds";

/// How often they are counted.
const PERIOD: Duration = Duration::from_secs(15);

/// Counts for ever.
pub(super) async fn refresh(
    metrics: &Metrics,
    service: &Service,
    clock: &Clock,
    threshold: Duration,
) {
    let mut was_told = false;
    loop {
        let result = metrics.refresh(service, clock.now(), threshold).await;
        // Once an outage, not once a period.
        if let Err(error) = &result
            && !was_told
        {
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "the gauges of unreconciled resources keep their values"
            );
        }
        was_told = result.is_err();
        tokio::time::sleep(PERIOD).await;
    }
}

impl Metrics {
    /// Counts once. What was counted before stays where that fails.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn refresh(
        &self,
        service: &Service,
        now: DateTime<Utc>,
        threshold: Duration,
    ) -> Result<(), crate::app::Error> {
        let threshold = TimeDelta::from_std(threshold).unwrap_or(TimeDelta::MAX);
        let before = now.checked_sub_signed(threshold);
        let before = before.unwrap_or(DateTime::UNIX_EPOCH);
        let counted = service.count_unreconciled(before).await;
        // Those who answer requests have connections of their own.
        service.rest();
        let counted = counted.inspect_err(|_| metrics::counter!(ERRORS).increment(1))?;
        let gauges = counted.iter().map(|counted| gauge(counted, now)).collect();
        *lock(&self.0.unreconciled) = gauges;
        let since_1970 = now - DateTime::UNIX_EPOCH;
        metrics::gauge!(REFRESHED).set(since_1970.as_seconds_f64());
        Ok(())
    }
}

fn gauge(counted: &Unreconciled, now: DateTime<Utc>) -> Gauge {
    let since = counted.since.filter(|_| counted.stuck > 0);
    let stuck_for = since.map_or(TimeDelta::zero(), |since| now - since);
    Gauge {
        resource_type: counted.kind.to_lowercase(),
        is_delete: counted.is_deleting,
        pending: counted.count,
        stuck: counted.stuck,
        stuck_seconds: stuck_for.as_seconds_f64(),
    }
}

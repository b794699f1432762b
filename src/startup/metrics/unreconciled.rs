//! Gauges of resources that wait to be reconciled: counted in the background, so that a scrape causes no query, and
//! shows the last values while the database is down.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{ApiMetrics, hidden_deletions, lock};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::telemetry::GaugeFamily;
use hyperfleet_service::app::{Service, Unreconciled};

const PENDING: &str = "hyperfleet_api_resource_pending_reconciliation";
const STUCK: &str = "hyperfleet_api_resource_pending_reconciliation_stuck";
const STUCK_SECONDS: &str = "hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds";
const ERRORS: &str = "hyperfleet_api_reconciliation_refresh_errors_total";
const REFRESHED: &str = "hyperfleet_api_reconciliation_refresh_timestamp_seconds";

/// How often they are counted.
const PERIOD: Duration = Duration::from_secs(15);

impl ApiMetrics {
    /// Counts forever. Resources that have not been reconciled for longer than `threshold` count as stuck.
    pub(in crate::startup) async fn run(self, service: Service, clock: Clock, threshold: Duration) {
        let mut was_logged = false;
        loop {
            let result = self.refresh(&service, clock.now(), threshold).await;
            // One line for each outage, not one for each period.
            if let Err(error) = &result
                && !was_logged
            {
                let error = error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "counting unreconciled resources failed: their gauges keep their values"
                );
            }
            was_logged = result.is_err();
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Counts once. After a failure the earlier counts stay.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn refresh(
        &self,
        service: &Service,
        now: DateTime<Utc>,
        threshold: Duration,
    ) -> Result<(), hyperfleet_service::app::Error> {
        let threshold = TimeDelta::from_std(threshold).unwrap_or(TimeDelta::MAX);
        let before = now.checked_sub_signed(threshold);
        let before = before.unwrap_or(DateTime::UNIX_EPOCH);
        let finalizing_before = now - hidden_deletions::PATIENCE;
        let counted = service.count_unreconciled(before, finalizing_before).await;
        // Threads that answer requests have their own connections.
        service.close_idle();
        let counted = counted.inspect_err(|_| metrics::counter!(ERRORS).increment(1))?;
        let mut families = families(&counted, now);
        families.push(lock(&self.hidden_deletions).measure(service, &counted, now));
        *lock(&self.unreconciled) = families;
        let since_1970 = now - DateTime::UNIX_EPOCH;
        metrics::gauge!(REFRESHED).set(since_1970.as_seconds_f64());
        Ok(())
    }
}

/// The three gauges, by kind and apart for those being deleted; without series where nothing is pending.
pub(super) fn families(counted: &[Unreconciled], now: DateTime<Utc>) -> Vec<GaugeFamily> {
    if counted.is_empty() {
        return Vec::new();
    }
    let family = |name, value: &dyn Fn(&Unreconciled) -> f64| {
        let series = counted.iter().map(|one| {
            let (kind, is_delete) = (one.kind.to_lowercase(), one.is_deleting.to_string());
            (
                vec![("resource_type", kind), ("is_delete", is_delete)],
                value(one),
            )
        });
        GaugeFamily {
            name,
            series: series.collect(),
        }
    };
    let stuck_seconds = |one: &Unreconciled| {
        let since = one.since.filter(|_| one.stuck > 0);
        since.map_or(0.0, |since| (now - since).as_seconds_f64())
    };
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    [
        family(PENDING, &|one| one.count as f64),
        family(STUCK, &|one| one.stuck as f64),
        family(STUCK_SECONDS, &stuck_seconds),
    ]
    .into()
}

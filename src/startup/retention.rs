//! Removes expired audit entries, changes, idempotency keys and leases.

use std::time::Duration;

use chrono::TimeDelta;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_service::app::{Error, Service};

/// How often expired rows are removed.
const PERIOD: Duration = Duration::from_hours(1);

/// How long rows without an expiry of their own are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    pub(super) changes: Duration,
    /// Unset for ever.
    pub(super) audit: Option<Duration>,
}

/// Removes expired rows periodically: idempotency keys with their answers, leases, changes, audit entries.
pub(super) async fn expire_forever(service: Service, clock: Clock, retention: Retention) {
    loop {
        let now = clock.now();
        let before = |retention| now.checked_sub_signed(TimeDelta::from_std(retention).ok()?);
        log("idempotency keys", service.expire_keys(now).await);
        log("leases", service.expire_leases().await);
        if let Some(before) = before(retention.changes) {
            log("changes", service.expire_changes(before).await);
        }
        if let Some(before) = retention.audit.and_then(before) {
            log("audit entries", service.expire_audit(before).await);
        }
        service.close_idle();
        tokio::time::sleep(PERIOD).await;
    }
}

fn log(what: &'static str, removed: Result<u64, Error>) {
    match removed {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, what, "expired rows removed"),
        Err(error) => {
            let error = anyhow::Error::from(error);
            let error = format!("{error:#}");
            tracing::warn!(error, what, "removing expired rows failed: retrying");
        }
    }
}

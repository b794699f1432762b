//! Removes expired audit entries, changes, idempotency keys and leases.

use std::time::Duration;

use hyperfleet_server_kit::clock::Clock;
use hyperfleet_service::app::{Error, Service};

/// How often expired rows are removed.
const PERIOD: Duration = Duration::from_hours(1);

/// Removes audit entries older than `retention`, periodically.
pub(super) async fn expire_audit(service: Service, clock: Clock, retention: Duration) {
    loop {
        let retention = chrono::TimeDelta::from_std(retention).unwrap_or(chrono::TimeDelta::MAX);
        if let Some(before) = clock.now().checked_sub_signed(retention) {
            log("audit entries", service.expire_audit(before).await);
            service.close_idle();
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Removes changes older than `retention`, periodically.
pub(super) async fn expire_changes(service: Service, clock: Clock, retention: Duration) {
    loop {
        let retention = chrono::TimeDelta::from_std(retention).unwrap_or(chrono::TimeDelta::MAX);
        if let Some(before) = clock.now().checked_sub_signed(retention) {
            log("changes", service.expire_changes(before).await);
            service.close_idle();
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Removes expired idempotency keys with their answers, and expired leases, periodically.
pub(super) async fn expire_keys(service: Service, clock: Clock) {
    loop {
        log("idempotency keys", service.expire_keys(clock.now()).await);
        log("leases", service.expire_leases().await);
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

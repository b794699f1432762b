//! Audit entries and idempotency keys that are old enough to go.

use std::time::Duration;

use crate::app::{Error, Service};
use hyperfleet_server_kit::clock::Clock;

/// How often what is expired is removed.
const PERIOD: Duration = Duration::from_hours(1);

/// Removes audit entries when they are older than the setting says, now and then.
pub(super) async fn expire_audit(service: Service, clock: Clock, kept: Duration) {
    loop {
        let kept = chrono::TimeDelta::from_std(kept).unwrap_or(chrono::TimeDelta::MAX);
        if let Some(before) = clock.now().checked_sub_signed(kept) {
            log("audit entries", service.expire_audit(before).await);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Removes idempotency keys with their answers when they are no longer remembered, now and then.
pub(super) async fn expire_keys(service: Service, clock: Clock) {
    loop {
        log("idempotency keys", service.expire_keys(clock.now()).await);
        tokio::time::sleep(PERIOD).await;
    }
}

fn log(what: &'static str, removed: Result<u64, Error>) {
    match removed {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "removed expired {what}"),
        Err(error) => {
            let error = anyhow::Error::from(error);
            tracing::warn!("expired {what} stay for now: {error:#}");
        }
    }
}

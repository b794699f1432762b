//! Removes expired audit entries.

use std::time::Duration;

use crate::app::Service;
use hyperfleet_server_kit::clock::Clock;

/// How often expired audit entries are removed.
const PERIOD: Duration = Duration::from_hours(1);

/// Removes audit entries older than `kept`, periodically.
pub(super) async fn expire_audit(service: Service, clock: Clock, kept: Duration) {
    loop {
        let kept = chrono::TimeDelta::from_std(kept).unwrap_or(chrono::TimeDelta::MAX);
        if let Some(before) = clock.now().checked_sub_signed(kept) {
            match service.expire_audit(before).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "expired audit entries removed"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    let error = format!("{error:#}");
                    tracing::warn!(error, "removing expired audit entries failed: retrying");
                }
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}

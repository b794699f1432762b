//! Seals the audit trail behind the writes, on every instance: one at a time does it.

use std::time::Duration;

use hyperfleet_server_kit::clock::Clock;
use hyperfleet_service::app::{ENTRIES_MAX, Error, Service};

const UNSEALED: &str = "hyperfleet_api_audit_unsealed_seconds";

/// How often stable entries are sealed.
const PERIOD: Duration = Duration::from_secs(2);

/// What the log has already.
#[derive(Default)]
struct Warned {
    is_failing: bool,
    is_set_back: bool,
}

/// Seals periodically, and keeps the gauge of the unsealed tail.
pub(super) async fn seal_forever(service: Service, clock: Clock) {
    let mut warned = Warned::default();
    loop {
        let result = seal(&service, &clock, &mut warned).await;
        // Once an outage, not once a period.
        if let Err(error) = &result
            && !warned.is_failing
        {
            let error = error as &dyn std::error::Error;
            tracing::warn!(error, "sealing the audit trail failed: retrying");
        }
        warned.is_failing = result.is_err();
        tokio::time::sleep(PERIOD).await;
    }
}

async fn seal(service: &Service, clock: &Clock, warned: &mut Warned) -> Result<(), Error> {
    let tail = service.unsealed_tail(clock.now()).await?;
    let age = tail.age.unwrap_or_default().as_seconds_f64();
    metrics::gauge!(UNSEALED).set(age);
    if tail.is_set_back && !warned.is_set_back {
        tracing::warn!(
            "the audit trail was set back: new entries precede the end of the last pass and are not sealed; \
             run SELECT begin_audit_era()"
        );
    }
    warned.is_set_back = tail.is_set_back;
    if tail.age.is_none() {
        return Ok(());
    }
    while let Some(count) = service.seal_audit(clock.now()).await? {
        tracing::debug!(count, "audit entries sealed");
        if count < ENTRIES_MAX {
            break;
        }
    }
    Ok(())
}

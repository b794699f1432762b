//! Logs whether etcd is reachable, at the start and whenever that changes.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::diagnosis::diagnose;
use crate::etcd::{EtcdKeys, Settings};
use crate::keys;
use crate::registry::{Error, Registry};
use hyperfleet_server_kit::causes;

/// How often the connection state is checked, without a request.
const PERIOD: Duration = Duration::from_millis(500);
/// First and longest pause between diagnoses. A short interruption is not worth one.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Logs when etcd is reached, and why it is not, once per reason, for ever. `is_connected` says whether the
/// mirror is connected; meanwhile this makes no requests.
pub async fn log_connection(
    registry: Registry<EtcdKeys>,
    settings: Settings,
    is_connected: impl Fn() -> bool,
) {
    let mut logged: Option<Result<(), String>> = None;
    let mut pause = PAUSES[0];
    let mut next = Instant::now() + pause;
    loop {
        if is_connected() {
            log_change(&mut logged, Ok(()), &settings);
            pause = PAUSES[0];
            next = Instant::now() + pause;
        } else if next <= Instant::now() {
            if let Err(fault) = check(&registry, &settings).await {
                log_change(&mut logged, Err(fault), &settings);
            }
            pause = (pause * 2).min(PAUSES[1]);
            next = Instant::now() + pause;
        }
        sleep(PERIOD).await;
    }
}

/// Asks etcd for its revision, and diagnoses a failure.
async fn check(registry: &Registry<EtcdKeys>, settings: &Settings) -> Result<(), String> {
    let Err(error) = registry.newest().await else {
        return Ok(());
    };
    if let Error::Store(keys::Error::Refused { message, .. }) = &error {
        return Err(format!("it refuses us: {message}"));
    }
    let settings = settings.clone();
    let found = spawn_blocking(move || diagnose(&settings)).await;
    match found.unwrap_or_default().join("; ") {
        none if none.is_empty() => Err(format!(
            "connections can be made, but calls fail: {}",
            causes::chain(&error)
        )),
        faults => Err(faults),
    }
}

/// Logs a change.
fn log_change(
    logged: &mut Option<Result<(), String>>,
    now: Result<(), String>,
    settings: &Settings,
) {
    if logged.as_ref() == Some(&now) {
        return;
    }
    let endpoints = settings.endpoints.join(", ");
    match &now {
        Ok(()) => tracing::info!(endpoints, "etcd connected"),
        Err(fault) => tracing::warn!(endpoints, fault, "waiting for etcd"),
    }
    *logged = Some(now);
}

//! Says whether etcd can be used: at the start, and whenever that changes.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::diagnosis::diagnose;
use crate::etcd::{EtcdKeys, Settings};
use crate::keys;
use crate::registry::{Error, Registry};
use hyperfleet_server_kit::causes;

/// How often one looks whether it is still there, which asks nobody.
const PERIOD: Duration = Duration::from_millis(500);
/// How long after it was last there, and then after a look in vain, the next look comes: at first, and at most. Who
/// has just begun, or is about to go on, is not in trouble.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Says in the log when etcd is reached, and why it is not: once for each reason, for ever. `is_connected` says
/// whether those who use it get on; while they do, this asks etcd nothing.
pub async fn keep_told(
    registry: Registry<EtcdKeys>,
    settings: Settings,
    is_connected: impl Fn() -> bool,
) {
    let mut told: Option<Result<(), String>> = None;
    let mut pause = PAUSES[0];
    let mut next = Instant::now() + pause;
    loop {
        if is_connected() {
            tell(&mut told, Ok(()), &settings);
            pause = PAUSES[0];
            next = Instant::now() + pause;
        } else if next <= Instant::now() {
            if let Err(fault) = look(&registry, &settings).await {
                tell(&mut told, Err(fault), &settings);
            }
            pause = (pause * 2).min(PAUSES[1]);
            next = Instant::now() + pause;
        }
        sleep(PERIOD).await;
    }
}

/// Asks how far it is, and if that fails looks for the reason.
async fn look(registry: &Registry<EtcdKeys>, settings: &Settings) -> Result<(), String> {
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

/// Says it if it is news.
fn tell(told: &mut Option<Result<(), String>>, now: Result<(), String>, settings: &Settings) {
    if told.as_ref() == Some(&now) {
        return;
    }
    let endpoints = settings.endpoints.join(", ");
    match &now {
        Ok(()) => tracing::info!(endpoints, "etcd is reached"),
        Err(fault) => tracing::warn!(endpoints, "waiting for etcd: {fault}"),
    }
    *told = Some(now);
}

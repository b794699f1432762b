//! Logs whether etcd is reachable, at the start and whenever that changes.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::diagnosis::diagnose;
use crate::etcd::{EtcdKeys, Settings};
use crate::keys;
use crate::mirror::MirrorProgress;
use crate::registry::{Error, Registry};
use hyperfleet_server_kit::backoff::Backoff;
use hyperfleet_server_kit::causes;

/// First and longest pause between diagnoses. A short interruption is not worth one.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Logs when etcd is reached, and why it is not, once per reason, for ever. While the mirror is connected, this makes no
/// requests.
pub(in crate::start) async fn log_connection(
    registry: Registry<EtcdKeys>,
    settings: Settings,
    mut mirror: watch::Receiver<MirrorProgress>,
) {
    let endpoints = settings.endpoints.join(", ");
    loop {
        log_until_connected(&registry, &settings, &mut mirror).await;
        tracing::info!(endpoints, "etcd connected");
        // The sender lives as long as the mirror.
        let _ = mirror.wait_for(|mirror| !mirror.is_connected).await;
    }
}

/// Logs why etcd is unreachable whenever the reason changes, until the mirror is connected.
async fn log_until_connected(
    registry: &Registry<EtcdKeys>,
    settings: &Settings,
    mirror: &mut watch::Receiver<MirrorProgress>,
) {
    let endpoints = settings.endpoints.join(", ");
    let mut backoff = Backoff::new(PAUSES[0], PAUSES[1]);
    let mut logged = None;
    loop {
        let connected = mirror.wait_for(|mirror| mirror.is_connected);
        if timeout(backoff.next_pause(), connected).await.is_ok() {
            return;
        }
        let fault = check(registry, settings).await.err();
        if fault.is_some() && fault != logged {
            tracing::warn!(endpoints, fault, "waiting for etcd");
            logged = fault;
        }
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
    let faults = diagnose(settings).await;
    Err(match faults.as_slice() {
        [] => format!(
            "connections can be made, but calls fail: {}",
            causes::chain(&error)
        ),
        faults => faults.join("; "),
    })
}

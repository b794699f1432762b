//! An engine without an agent.

use std::future::Future;
use std::time::Duration;

use hyperfleet_fleet::Fleet;
use hyperfleet_fleet::engine::{Engine, Settings};
use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::Registry;

/// The default settings of a machine's engine.
pub fn engine_settings(id: &str) -> Settings {
    Settings {
        id: id.to_owned(),
        lease_seconds: 10,
        machine_lease: Duration::from_secs(30),
        interval: Duration::from_secs(2),
    }
}

/// Runs an engine with its own mirror, until `until` ends.
pub async fn run_engine<S: KeyStore>(
    registry: Registry<S>,
    settings: Settings,
    until: impl Future<Output = ()>,
) {
    let fleet = Fleet::new(registry, 1);
    let mirror = Box::pin(fleet.clone().run_mirror());
    tokio::select! {
        () = Engine::following(fleet, settings).run(until) => {}
        () = mirror => {}
    }
}

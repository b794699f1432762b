//! The engine as a task that stops only on request, and resigns first.

use crate::settings;
use hyperfleet_fleet::{EtcdFleet, engine};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::supervise::StoppableTask;

/// Starts the engine, which retries after every failure. After its stop, which waits for its end, another engine can lead.
pub(super) fn start_engine(
    fleet: EtcdFleet,
    settings: &settings::EngineSettings,
    machine_id: &str,
) -> StoppableTask<()> {
    engine::count_from_zero();
    let settings = engine::Settings {
        id: machine_id.to_owned(),
        lease_seconds: settings.lease_seconds(),
        machine_lease: settings.machine_lease,
        interval: settings.interval,
    };
    StoppableTask::start("decide where units run", move |stop| {
        let engine = engine::Engine::following(fleet.clone(), settings.clone());
        engine.with_clock(Clock::system()).run(stop)
    })
}

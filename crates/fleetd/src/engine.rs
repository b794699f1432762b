//! The engine as a task that stops only on request, and resigns first.

use std::ops::ControlFlow;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::settings;
use hyperfleet_fleet::{EtcdFleet, engine};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::supervise::supervise_until_done;

pub(super) struct Engine {
    stop: watch::Sender<bool>,
    /// Ends with this.
    task: JoinHandle<()>,
}

impl Engine {
    /// Starts the engine, which retries after every failure.
    pub(super) fn start(
        fleet: EtcdFleet,
        settings: &settings::EngineSettings,
        machine_id: &str,
    ) -> Self {
        engine::count_from_zero();
        let settings = engine::Settings {
            id: machine_id.to_owned(),
            lease_seconds: settings.lease_seconds(),
            machine_lease: settings.machine_lease,
            interval: settings.interval,
        };
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(supervise_until_done("decide where units run", move || {
            let engine = engine::Engine::following(fleet.clone(), settings.clone());
            let engine = engine.with_clock(Clock::system());
            let mut until = stopping.clone();
            async move {
                let stopped = async {
                    // A dropped sender means that nothing waits for the engine.
                    let _ = until.wait_for(|is_due| *is_due).await;
                };
                Box::pin(engine.run(stopped)).await;
                if *until.borrow() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }
        }));
        Self { stop, task }
    }

    /// Stops it, and waits until another engine can lead.
    pub(super) async fn resign(mut self) {
        self.stop.send_replace(true);
        // Fails only if the engine has ended by a panic of its supervisor.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

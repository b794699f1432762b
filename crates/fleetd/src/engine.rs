//! The engine as a task that stops only on request, and resigns first.

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::settings;
use hyperfleet_fleet::{EtcdFleet, engine};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::supervise::{PAUSE, supervise};

pub(super) struct Engine {
    stop: watch::Sender<bool>,
    has_resigned: watch::Receiver<bool>,
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
        let (resigned, has_resigned) = watch::channel(false);
        let task = tokio::spawn(supervise("decide where units run", PAUSE, move || {
            let engine = engine::Engine::following(fleet.clone(), settings.clone());
            let engine = engine.with_clock(Clock::system());
            let (mut until, resigned) = (stopping.clone(), resigned.clone());
            async move {
                let stopped = async {
                    // A dropped sender means that nothing waits for the engine.
                    let _ = until.wait_for(|is_due| *is_due).await;
                };
                Box::pin(engine.run(stopped)).await;
                if *until.borrow() {
                    resigned.send_replace(true);
                    std::future::pending::<()>().await;
                }
            }
        }));
        Self {
            stop,
            has_resigned,
            task,
        }
    }

    /// Stops it, and waits until another engine can lead.
    pub(super) async fn resign(mut self) {
        self.stop.send_replace(true);
        // The send fails only if the engine has ended.
        let _ = self
            .has_resigned
            .wait_for(|has_resigned| *has_resigned)
            .await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

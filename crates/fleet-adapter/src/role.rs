//! The fleet adapter as a task of a process.

use std::ops::ControlFlow;
use std::time::Duration;

use hyperfleet_fleet::start::Prepared;
use hyperfleet_server_kit::supervise::supervise_until_done;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::plan::AdapterPlan;
use crate::run::run;

/// Part of the end time for releasing the lease.
const RELEASE_TIME: Duration = Duration::from_secs(1);

/// A running fleet adapter, which restarts if it panics.
pub struct Role {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    end_time: Duration,
}

impl Role {
    /// Starts it; its end may take `end_time`. `own_url` is the URL of the API in this process.
    ///
    /// # Errors
    ///
    /// The URL or the file of the token cannot be used.
    pub fn start(
        plan: AdapterPlan,
        fleet: &Prepared,
        own_url: Option<String>,
        end_time: Duration,
    ) -> anyhow::Result<Self> {
        let grace = end_time.saturating_sub(RELEASE_TIME);
        let api = plan.api_url(own_url);
        let running = plan.running(fleet, &api, grace)?;
        let adapter = &running.settings.name;
        tracing::info!(adapter, api, "running the fleet adapter");
        let stop = watch::Sender::new(false);
        let stopped = stop.subscribe();
        let supervised = supervise_until_done("run the fleet adapter", move || {
            let (running, mut stopped) = (running.clone(), stopped.clone());
            async move {
                let stop = async move {
                    // Fails only if the sender, which could stop it, is gone.
                    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
                };
                run(running, stop).await;
                // It must not start again.
                ControlFlow::Break(())
            }
        });
        Ok(Self {
            stop,
            task: tokio::spawn(supervised),
            end_time,
        })
    }

    /// Asks it to end: it takes no more work.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits for its end, after [`Role::stop`]. Work that takes too long is cut off, and the lease expires.
    pub async fn ended(mut self) {
        if timeout(self.end_time, &mut self.task).await.is_err() {
            tracing::warn!("fleet adapter stopped immediately: its work took too long");
            self.task.abort();
        }
    }
}

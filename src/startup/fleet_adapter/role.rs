//! The fleet adapter as a task of a process.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;

use hyperfleet_fleet::start::Prepared;
use hyperfleet_server_kit::supervise::supervise_until_done;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::AdapterPlan;

/// Part of the end time for releasing the lease.
const RELEASE_TIME: Duration = Duration::from_secs(1);

/// A running fleet adapter, which restarts if it panics.
pub(crate) struct Role {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    end_time: Duration,
}

impl Role {
    /// Starts it; its end may take `end_time`. `listener` is the API's listener in this process.
    pub(crate) fn start(
        plan: AdapterPlan,
        fleet: Prepared,
        listener: Option<SocketAddr>,
        end_time: Duration,
    ) -> Self {
        let api_url = plan.api_url(listener);
        tracing::info!(
            adapter = plan.name(),
            api = api_url,
            "running the fleet adapter"
        );
        let stop = watch::Sender::new(false);
        let stopped = stop.subscribe();
        let grace = end_time.saturating_sub(RELEASE_TIME);
        let supervised = supervise_until_done("run the fleet adapter", move || {
            let running = plan.running(&fleet, &api_url, grace);
            let mut stopped = stopped.clone();
            async move {
                let Ok(running) = running.inspect_err(|error| {
                    let error = format!("{error:#}");
                    tracing::error!(error, "fleet adapter cannot run: retrying");
                }) else {
                    return ControlFlow::Continue(());
                };
                let stop = async move {
                    // Fails only if the sender, which could stop it, is gone.
                    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
                };
                hyperfleet_fleet_adapter::run(running, stop).await;
                // It must not start again.
                ControlFlow::Break(())
            }
        });
        Self {
            stop,
            task: tokio::spawn(supervised),
            end_time,
        }
    }

    /// Asks it to end: it takes no more work.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits for its end, after [`Role::stop`]. Work that takes too long is cut off, and the lease expires.
    pub(crate) async fn ended(mut self) {
        if timeout(self.end_time, &mut self.task).await.is_err() {
            tracing::warn!("fleet adapter stopped immediately: its work took too long");
            self.task.abort();
        }
    }
}

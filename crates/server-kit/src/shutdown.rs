//! Graceful shutdown of the API: requests in progress are completed.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

use super::ending;
use super::server::Serving;
use super::signals::Signals;
use super::telemetry::Traces;
use crate::http::Gate;

/// How often open connections are checked.
const LOOK: Duration = Duration::from_millis(10);

/// Timeouts of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Time for load balancers to notice that the service is stopping.
    pub delay: Duration,
    /// Time for requests in progress.
    pub drain: Duration,
    /// The setting of that time.
    pub drain_setting: &'static str,
}

/// Reports the service as not ready, continues for a while, then accepts no new connections, and waits until
/// every request in progress is answered.
///
/// When it stops, actix closes idle connections immediately and the others after their response, so open
/// connections are requests in progress.
///
/// # Errors
///
/// Requests took too long and were cut off.
pub async fn drain(
    gate: &Gate,
    serving: &Serving,
    signals: &mut Signals,
    times: Times,
) -> anyhow::Result<()> {
    gate.stop();
    let delay_seconds = times.delay.as_secs_f64();
    tracing::info!(
        delay_seconds,
        "stopping: not ready; send the signal again to stop immediately"
    );
    pause(signals, times.delay).await;
    let open = serving.open_connections();
    tracing::info!(
        connections = open,
        "stopping: completing requests in progress"
    );
    // Sent immediately. The end of all threads, which they check once a second, does not matter: only open
    // connections count.
    drop(serving.handle.stop(true));
    let deadline = Instant::now() + times.drain;
    // A connection that was just accepted is not counted yet.
    pause(signals, LOOK * 5).await;
    while serving.open_connections() > 0 {
        if Instant::now() >= deadline {
            let requests = serving.open_connections();
            let seconds = times.drain.as_secs_f64();
            tracing::error!(requests, seconds, "stopping: cutting off requests");
            let setting = times.drain_setting;
            bail!("{requests} requests were cut off: they took longer than {setting}");
        }
        tokio::select! {
            () = sleep(LOOK) => {}
            () = signals.next() => ending::at_once(),
        }
    }
    tracing::info!("stopped: all requests completed");
    Ok(())
}

/// Waits, unless another signal ends the process immediately.
async fn pause(signals: &mut Signals, time: Duration) {
    tokio::select! {
        () = sleep(time) => {}
        () = signals.next() => ending::at_once(),
    }
}

/// Exports the last spans, unless a signal ends the process immediately: signals are handled here because the
/// server that handled them has stopped.
pub async fn send_spans(traces: Traces) {
    let Ok(mut signals) = Signals::catch() else {
        return traces.end().await;
    };
    tokio::select! {
        () = traces.end() => {}
        () = signals.next() => ending::at_once(),
    }
}

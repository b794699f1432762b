//! How the API ends: nobody is sent away who was asked to come.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

use super::ending;
use super::server::Serving;
use super::signals::Signals;
use super::telemetry::Traces;
use crate::http::Gate;

/// How often it is looked whether requests are still under way.
const LOOK: Duration = Duration::from_millis(10);

/// How long each part may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// For those who send requests to notice that no more are wanted.
    pub delay: Duration,
    /// For requests under way to be answered.
    pub drain: Duration,
    /// What says how long that is.
    pub drain_setting: &'static str,
}

/// Says that the service is not ready, goes on for a while, takes no new connections, and waits
/// until every request under way is answered.
///
/// actix closes connections without a request at once when it is told to stop, and the others
/// when theirs is answered: what is still open is under way.
///
/// # Errors
///
/// Requests took longer than they may: they are cut.
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
        "stopping: not ready any more; again to stop at once"
    );
    pause(signals, times.delay).await;
    let open = serving.open_connections();
    tracing::info!(connections = open, "stopping: answering what is under way");
    // Sent at once. When all threads have ended, which they look at once a second, is nobody's
    // business: what counts is that nothing is open.
    drop(serving.handle.stop(true));
    let deadline = Instant::now() + times.drain;
    // A connection that was accepted a moment ago is not counted yet.
    pause(signals, LOOK * 5).await;
    while serving.open_connections() > 0 {
        if Instant::now() >= deadline {
            let requests = serving.open_connections();
            let seconds = times.drain.as_secs_f64();
            tracing::error!(requests, seconds, "stopping: requests are cut");
            let setting = times.drain_setting;
            bail!("{requests} requests were cut: they took longer than {setting}");
        }
        tokio::select! {
            () = sleep(LOOK) => {}
            () = signals.next() => ending::at_once(),
        }
    }
    tracing::info!("stopped: everything is answered");
    Ok(())
}

/// Waits so long, unless another signal ends the process at once.
async fn pause(signals: &mut Signals, time: Duration) {
    tokio::select! {
        () = sleep(time) => {}
        () = signals.next() => ending::at_once(),
    }
}

/// Sends the last spans, unless a signal ends the process at once: whoever listened to signals while
/// there was something to serve does not any more.
pub async fn send_spans(traces: Traces) {
    let Ok(mut signals) = Signals::catch() else {
        return traces.end().await;
    };
    tokio::select! {
        () = traces.end() => {}
        () = signals.next() => ending::at_once(),
    }
}

//! Messages to the service manager (`sd_notify(3)`), if there is one. Failures to send them are ignored.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Clients are answered.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// The settings are being read again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// The program is stopping.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Keep-alives for a service manager that restarts silent services (`WatchdogSec=`).
#[derive(Debug)]
pub struct Watchdog(Option<Interval>);

impl Watchdog {
    /// The interval of the service manager, if it has set one.
    pub fn of_manager() -> Self {
        Self::every(sd_notify::watchdog_enabled())
    }

    /// Twice per interval, as `sd_watchdog_enabled(3)` recommends.
    fn every(time: Option<Duration>) -> Self {
        let time = time.filter(|time| !time.is_zero());
        Self(time.map(|time| {
            let mut beats = interval(time / 2);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beats
        }))
    }

    /// Waits for the next keep-alive, and sends it. Without a watchdog it waits forever. Cancel-safe.
    pub async fn beat(&mut self) {
        let Some(beats) = &mut self.0 else {
            return std::future::pending().await;
        };
        beats.tick().await;
        notify(&[NotifyState::Watchdog]);
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "notifying the service manager failed");
    }
}

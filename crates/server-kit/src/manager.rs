//! What the service manager is told (`sd_notify(3)`), if there is one that listens. Whether it hears stops nothing.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Clients are answered.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The settings are read again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// It ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Signs of life for a service manager that restarts what falls silent (`WatchdogSec=`).
#[derive(Debug)]
pub struct Watchdog(Option<Interval>);

impl Watchdog {
    /// The one that the service manager has asked for, if it has.
    pub fn of_manager() -> Self {
        Self::every(sd_notify::watchdog_enabled())
    }

    /// Twice in that time, as `sd_watchdog_enabled(3)` asks for.
    fn every(time: Option<Duration>) -> Self {
        let time = time.filter(|time| !time.is_zero());
        Self(time.map(|time| {
            let mut beats = interval(time / 2);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beats
        }))
    }

    /// Waits for the next sign of life, and gives it. Without a watchdog it waits for ever. May be given up half-way.
    pub async fn beat(&mut self) {
        let Some(beats) = &mut self.0 else {
            return std::future::pending().await;
        };
        beats.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("the service manager cannot be told how it is: {error}");
    }
}

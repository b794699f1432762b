//! What the service manager is told (`sd_notify(3)`), if there is one that listens. Whether it hears stops nothing.

use sd_notify::NotifyState;

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

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("the service manager cannot be told how it is: {error}");
    }
}

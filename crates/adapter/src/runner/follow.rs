//! Follows the changes of a kind with a watch, where the service offers one.
//!
//! ```text
//! watch from now ──bookmark──▶ following ──a break──▶ pause ──▶ watch from the last position
//!       ▲                                               │
//!       └──── the position is gone; no watch offered ◀──┘
//! ```

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::news::{News, Part};
use super::{Kind, PAUSE, PAUSE_MAX, Shared, jitter};
use crate::telemetry;
use crate::watch::WatchEnd;

/// Pause after the service offered no watch: it may be upgraded.
const NOT_OFFERED_PAUSE: Duration = Duration::from_mins(10);

/// Whether a watch shows the changes of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Following {
    /// Whether changes arrive now. While they do not, they have to be listed.
    pub(super) is_on: bool,
    /// How many times a watch has begun without the position of an earlier one. Changes before are found only by
    /// a list of everything that begins later.
    pub(super) gaps: u64,
}

/// What was logged last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logged {
    Nothing,
    Following,
    NotOffered,
    Failing,
}

/// The watches of a kind, one after the other.
struct Follower<'a, A> {
    shared: &'a Shared<A>,
    kind: usize,
    following: &'a watch::Sender<Following>,
    sender: &'a mpsc::Sender<News>,
    /// The last position of a watch. Every change before it was sent.
    position: Option<String>,
    logged: Logged,
}

/// Changes arrive as long as it exists.
struct FollowingGuard<'a> {
    following: &'a watch::Sender<Following>,
    plural: &'a str,
}

/// Follows a kind for ever, and says in `following` whether changes arrive. Ends when the receiver of news is gone.
pub(super) async fn follow_forever<A>(
    shared: &Shared<A>,
    kind: usize,
    following: &watch::Sender<Following>,
    sender: &mpsc::Sender<News>,
) {
    let mut follower = Follower {
        shared,
        kind,
        following,
        sender,
        position: None,
        logged: Logged::Nothing,
    };
    let mut pause = PAUSE;
    while !sender.is_closed() {
        let begun_at = Instant::now();
        let end = follower.follow().await;
        if begun_at.elapsed() > PAUSE_MAX {
            pause = PAUSE;
        }
        let at_least = match end {
            WatchEnd::NotOffered(_) => NOT_OFFERED_PAUSE,
            WatchEnd::PositionGone => {
                follower.position = None;
                Duration::ZERO
            }
            WatchEnd::Failed(error) => error.again_after().unwrap_or_default(),
        };
        // Jitter, because an instance that stops ends the watches of many adapters.
        sleep(at_least.max(pause.mul_f64(1.0 - jitter() / 2.0))).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

impl<A> Follower<'_, A> {
    /// Sends changes until the watch ends.
    async fn follow(&mut self) -> WatchEnd {
        let shared = self.shared;
        let Kind { plural, search } = &shared.settings.kinds[self.kind];
        let after = self.position.as_deref();
        let begun = shared.api.watch(plural, search.as_deref(), after).await;
        let mut watch = match begun {
            Ok(watch) => watch,
            Err(end) => {
                self.log_refusal(plural, &end);
                return end;
            }
        };
        let mut guard = None;
        loop {
            let changes = match watch.next().await {
                Ok(changes) => changes,
                Err(end) if guard.is_none() => {
                    self.log_refusal(plural, &end);
                    return end;
                }
                Err(end) => {
                    tracing::debug!(kind = plural, reason = %end, "watch ended");
                    return end;
                }
            };
            if !changes.is_empty() {
                let (kind, part) = (self.kind, Part::Changed(changes));
                // The receiver is gone when the adapter stops, and this watch with it.
                let _ = self.sender.send(News { kind, part }).await;
            }
            // The service begins with a bookmark. A proxy that keeps answers back shows none.
            let Some(position) = watch.position() else {
                continue;
            };
            let is_gap = self.position.is_none();
            self.position = Some(position.to_owned());
            if guard.is_none() {
                guard = Some(FollowingGuard::new(self.following, plural, is_gap));
                self.log_begin(plural);
            }
        }
    }

    fn log_begin(&mut self, plural: &str) {
        if self.log(Logged::Following) {
            tracing::info!(kind = plural, "following changes with a watch");
        }
    }

    fn log_refusal(&mut self, plural: &str, end: &WatchEnd) {
        match end {
            WatchEnd::NotOffered(reason) => {
                if self.log(Logged::NotOffered) {
                    tracing::info!(kind = plural, reason, "no watch offered: polling");
                }
            }
            WatchEnd::PositionGone => {
                tracing::info!(kind = plural, "watch position gone: listing everything");
            }
            WatchEnd::Failed(error) => {
                if self.log(Logged::Failing) {
                    let error = error as &dyn std::error::Error;
                    tracing::warn!(kind = plural, error, "watch failed: polling meanwhile");
                }
            }
        }
    }

    /// Whether this is something else than what was logged last.
    fn log(&mut self, what: Logged) -> bool {
        std::mem::replace(&mut self.logged, what) != what
    }
}

impl<'a> FollowingGuard<'a> {
    fn new(following: &'a watch::Sender<Following>, plural: &'a str, is_gap: bool) -> Self {
        following.send_modify(|following| {
            following.is_on = true;
            following.gaps += u64::from(is_gap);
        });
        telemetry::following(plural, true);
        Self { following, plural }
    }
}

impl Drop for FollowingGuard<'_> {
    fn drop(&mut self) {
        self.following
            .send_modify(|following| following.is_on = false);
        telemetry::following(self.plural, false);
    }
}

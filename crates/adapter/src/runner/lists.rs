//! Lists the resources that need work: periodically, and where a watch does not show them.

use std::future::pending;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::follow::Following;
use super::news::{News, Part};
use super::{Kind, PAUSE, PAUSE_MAX, Shared, jitter};
use crate::error::Error;
use crate::telemetry;

/// Resources that any adapter may have to work on.
const NOT_RECONCILED: &str = "status.conditions.Reconciled='False'";
/// Delay of the first sweep. A sweep that begins after the watch leaves no gap between them.
const SWEEP_DELAY: Duration = Duration::from_secs(1);

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Unreconciled resources.
    Changes,
    /// All resources, to work on those that changed while no watch showed it.
    Everything,
    /// All resources, to work on each.
    Sweep,
}

/// When to list what.
struct Schedule {
    following: watch::Receiver<Following>,
    poll_at: Instant,
    /// `None` before the first list: after a start unreconciled resources come before everything else.
    sweep_at: Option<Instant>,
    has_swept: bool,
    /// The [gaps](Following::gaps) before the last list of all resources.
    covered_gaps: u64,
    /// How it was when the current list began.
    begun: Following,
}

/// Lists a kind for ever: unreconciled resources while no watch shows changes, everything at longer intervals. Ends
/// when the receiver is gone.
pub(super) async fn list_forever<A>(
    shared: &Shared<A>,
    kind: usize,
    following: watch::Receiver<Following>,
    sender: &mpsc::Sender<News>,
) {
    let settings = &shared.settings;
    let mut schedule = Schedule::new(following);
    let (mut pause, mut is_logged) = (PAUSE, false);
    while !sender.is_closed() {
        let pass = schedule.next().await;
        let listed = list(shared, kind, pass, sender).await;
        telemetry::listed(&settings.kinds[kind].plural, pass.name(), listed.is_ok());
        match listed {
            Ok(()) => {
                if std::mem::take(&mut is_logged) {
                    tracing::info!(kind = settings.kinds[kind].plural, "API reachable again");
                }
                pause = PAUSE;
                // Spreads replicas and kinds over time.
                let sweep_interval = settings.sweep_interval.mul_f64(0.9 + jitter() / 5.0);
                schedule.listed(pass, settings.poll_interval, sweep_interval);
            }
            Err(error) => {
                let asked = error.again_after().unwrap_or_default();
                if !std::mem::replace(&mut is_logged, true) {
                    let (error, kind) = (
                        format!("{:#}", anyhow::Error::from(error)),
                        &settings.kinds[kind].plural,
                    );
                    tracing::warn!(error, kind, "listing resources failed: retrying");
                }
                sleep(asked.max(pause)).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

impl Pass {
    fn name(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Everything | Self::Sweep => "everything",
        }
    }
}

impl Schedule {
    fn new(following: watch::Receiver<Following>) -> Self {
        Self {
            following,
            poll_at: Instant::now(),
            sweep_at: None,
            has_swept: false,
            covered_gaps: 0,
            begun: Following::default(),
        }
    }

    /// Waits until a list is due.
    async fn next(&mut self) -> Pass {
        loop {
            let now = Instant::now();
            self.begun = *self.following.borrow_and_update();
            let Following { is_on, gaps } = self.begun;
            let Some(sweep_at) = self.sweep_at else {
                return Pass::Changes;
            };
            if now >= sweep_at {
                return Pass::Sweep;
            }
            if gaps != self.covered_gaps {
                return if self.has_swept {
                    Pass::Everything
                } else {
                    Pass::Sweep
                };
            }
            if is_on {
                // When the watch ends, a list follows at once.
                self.poll_at = now;
            } else if now >= self.poll_at {
                return Pass::Changes;
            }
            let until = if is_on {
                sweep_at
            } else {
                sweep_at.min(self.poll_at)
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = changed(&mut self.following) => {}
            }
        }
    }

    /// Plans the lists after a complete one.
    fn listed(&mut self, pass: Pass, poll_interval: Duration, sweep_interval: Duration) {
        let now = Instant::now();
        if !self.begun.is_on {
            self.poll_at = now + poll_interval;
        }
        match pass {
            Pass::Changes => {
                self.sweep_at.get_or_insert(now + SWEEP_DELAY);
                return;
            }
            Pass::Everything => {}
            Pass::Sweep => {
                self.has_swept = true;
                self.sweep_at = Some(now + sweep_interval);
            }
        }
        self.covered_gaps = self.begun.gaps;
    }
}

/// Waits for another value. If the sender is gone, the last value stays.
async fn changed(following: &mut watch::Receiver<Following>) {
    if following.changed().await.is_err() {
        pending::<()>().await;
    }
}

async fn list<A>(
    shared: &Shared<A>,
    kind: usize,
    pass: Pass,
    sender: &mpsc::Sender<News>,
) -> Result<(), Error> {
    let Kind { plural, search } = &shared.settings.kinds[kind];
    let search = match (search, pass) {
        (search, Pass::Everything | Pass::Sweep) => search.clone(),
        (None, Pass::Changes) => Some(NOT_RECONCILED.to_owned()),
        (Some(search), Pass::Changes) => Some(format!("{NOT_RECONCILED} and ({search})")),
    };
    // The receiver is gone when the adapter stops.
    let send = async |part| sender.send(News { kind, part }).await.is_ok();
    if pass == Pass::Sweep && !send(Part::SweepBegins).await {
        return Ok(());
    }
    let mut from = None;
    loop {
        let page = shared
            .api
            .list(plural, search.as_deref(), from.as_ref())
            .await?;
        from = page.next;
        let part = match pass {
            Pass::Changes | Pass::Everything => Part::Listed(page.items),
            Pass::Sweep => Part::Swept(page.items),
        };
        if !send(part).await {
            return Ok(());
        }
        if from.is_none() {
            break;
        }
    }
    if pass == Pass::Sweep {
        send(Part::SweepEnds).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);
    const SWEEP: Duration = Duration::from_mins(10);

    /// The next list, and after how many seconds.
    async fn next(schedule: &mut Schedule) -> (Pass, u64) {
        let begin = Instant::now();
        let pass = schedule.next().await;
        schedule.listed(pass, POLL, SWEEP);
        (pass, begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watch_changes_are_polled_between_sweeps() {
        let (_following, followed) = watch::channel(Following::default());
        let mut schedule = Schedule::new(followed);
        assert_eq!(next(&mut schedule).await, (Pass::Changes, 0));
        assert_eq!(next(&mut schedule).await, (Pass::Sweep, 1));
        for _ in 1..120 {
            assert_eq!(next(&mut schedule).await, (Pass::Changes, 5));
        }
        assert_eq!(next(&mut schedule).await, (Pass::Sweep, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn with_a_watch_only_gaps_are_listed() {
        let (following, followed) = watch::channel(Following::default());
        let mut schedule = Schedule::new(followed);
        assert_eq!(next(&mut schedule).await, (Pass::Changes, 0));
        let set = |is_on, gaps| {
            following.send_replace(Following { is_on, gaps });
        };
        set(true, 1);
        assert_eq!(next(&mut schedule).await, (Pass::Sweep, 0));
        assert_eq!(next(&mut schedule).await, (Pass::Sweep, 600));
        set(false, 1);
        assert_eq!(next(&mut schedule).await, (Pass::Changes, 0), "it broke");
        assert_eq!(next(&mut schedule).await, (Pass::Changes, 5));
        set(true, 1);
        assert_eq!(next(&mut schedule).await, (Pass::Sweep, 595), "it goes on");
        set(true, 2);
        assert_eq!(next(&mut schedule).await, (Pass::Everything, 0));
        assert_eq!(next(&mut schedule).await, (Pass::Sweep, 600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_begins_and_ends_during_a_list_is_a_gap() {
        let (following, followed) = watch::channel(Following::default());
        let mut schedule = Schedule::new(followed);
        assert_eq!(next(&mut schedule).await, (Pass::Changes, 0));
        assert_eq!(schedule.next().await, Pass::Sweep);
        let gaps = 1;
        following.send_replace(Following { is_on: true, gaps });
        following.send_replace(Following { is_on: false, gaps });
        schedule.listed(Pass::Sweep, POLL, SWEEP);
        assert_eq!(next(&mut schedule).await, (Pass::Everything, 0));
        assert_eq!(next(&mut schedule).await, (Pass::Changes, 5));
    }
}

//! Reads every change once, as soon as no earlier one can appear, and publishes it to the watchers.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::batch::BatchSize;
use super::event::change_bytes;
use super::feed::Feed;
use super::metrics;
use hyperfleet_domain::watch::{Horizon, HorizonMove};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_storage::{ChangeFeed, ChangesSlice, Error};

/// Time between polls while there are watchers.
const PERIOD: Duration = Duration::from_millis(25);
/// The period while a change waits for an open transaction, because most transactions end soon.
const PERIOD_WAITING: Duration = Duration::from_millis(10);
/// The same without watchers: only the positions in answers depend on it.
const PERIOD_IDLE: Duration = Duration::from_millis(500);
/// Time before another attempt after an error.
const PAUSE: Duration = Duration::from_millis(250);

/// Follows the changes forever. After an error it resumes at its position.
pub(super) async fn follow(feed: &Feed, mut source: ChangeFeed) {
    let mut tail = Tail {
        feed,
        horizon: Horizon::default(),
        batch: BatchSize::default(),
        waiting_since: None,
        is_failing: false,
    };
    loop {
        let result = tail.poll(&mut source).await;
        let pause = tail.pause(result);
        metrics::lag(
            tail.waiting_since
                .map_or(Duration::ZERO, |since| since.elapsed()),
        );
        tokio::select! {
            () = feed.woken(), if !tail.is_failing => {}
            () = sleep(pause) => {}
        }
    }
}

struct Tail<'f> {
    feed: &'f Feed,
    horizon: Horizon,
    batch: BatchSize,
    /// Since when changes exist that were not published.
    waiting_since: Option<Instant>,
    is_failing: bool,
}

impl Tail<'_> {
    async fn poll(&mut self, source: &mut ChangeFeed) -> Result<(), Error> {
        let end = source.end().await?;
        let known = self.feed.progress();
        if self.horizon.observe(&end) == HorizonMove::Reset
            || known.is_some_and(|known| known.era != end.era || known.latest > end.allocated)
        {
            tracing::warn!(
                era = end.era,
                position = end.allocated,
                "database set back: every watch ends"
            );
            self.feed.reset();
        }
        if self.horizon.is_waiting() {
            self.waiting_since.get_or_insert_with(Instant::now);
        }
        let upto = self.horizon.upto();
        if upto == 0 && self.horizon.is_waiting() {
            // Where it is, is known only when these writers have ended.
            return Ok(());
        }
        let Some(mut after) = self.feed.polled(&end, upto) else {
            return Ok(());
        };
        while after < upto {
            let slice = ChangesSlice {
                after,
                upto,
                kind: None,
                count_max: self.batch.count(),
            };
            let read = source.read(slice).await?;
            if read.era != end.era {
                // The next poll ends the watches.
                return Ok(());
            }
            if read.removed > after {
                tracing::warn!(
                    position = after,
                    removed = read.removed,
                    "changes expired before they were read: every watch ends"
                );
                self.feed.reset();
                return Ok(());
            }
            self.batch.learn(read.changes.iter().map(change_bytes));
            after = read.reached;
            self.feed.publish(read.changes, read.reached);
        }
        Ok(())
    }

    /// The time until the next poll. An outage is logged once.
    fn pause(&mut self, result: Result<(), Error>) -> Duration {
        let was_failing = std::mem::replace(&mut self.is_failing, result.is_err());
        if let Err(error) = result {
            self.waiting_since.get_or_insert_with(Instant::now);
            if !was_failing {
                tracing::warn!(error = chain(&error), "changes cannot be read: retrying");
            }
            return PAUSE;
        }
        if !self.horizon.is_waiting() {
            self.waiting_since = None;
        }
        if was_failing {
            tracing::info!("changes are read again");
        }
        if !self.feed.is_watched() {
            PERIOD_IDLE
        } else if self.horizon.is_waiting() {
            PERIOD_WAITING
        } else {
            PERIOD
        }
    }
}

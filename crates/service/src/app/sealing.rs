//! Seals the audit trail behind the writes (`docs/decisions/0086-audit-passes.md`).

use chrono::{DateTime, TimeDelta, Utc};

use hyperfleet_audit::{Link, TrailPosition};

use super::{Error, Service};
use hyperfleet_storage::{Db, SealingState, TrailEnd};

/// Entries that one transaction seals at most.
pub const ENTRIES_MAX: usize = 5_000;

/// The part of the trail that is not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsealedTail {
    /// The age of its first entry; unset if it is empty.
    pub age: Option<TimeDelta>,
    /// Whether new entries can get positions before the end of the last pass, because the database was set back and no new era was
    /// begun. Then nothing is sealed.
    pub is_set_back: bool,
}

impl Service {
    /// How far the sealing is behind, by one statement.
    pub async fn unsealed_tail(&self, now: DateTime<Utc>) -> Result<UnsealedTail, Error> {
        let mut session = self.store.session().await?;
        let state = session.db().sealing_state().await?;
        Ok(UnsealedTail {
            age: state
                .unsealed_at
                .map(|at| (now - at).max(TimeDelta::zero())),
            is_set_back: is_set_back(&state),
        })
    }

    /// Seals stable entries, in one transaction; returns their number, or `None` if another instance is sealing. No
    /// other transaction waits for it.
    pub async fn seal_audit(&self, now: DateTime<Utc>) -> Result<Option<usize>, Error> {
        let mut tx = self.store.begin().await?;
        let result = seal(&mut tx.db(), now).await;
        tx.finish(result).await
    }
}

async fn seal(db: &mut Db<'_>, now: DateTime<Utc>) -> Result<Option<usize>, Error> {
    if !db.lock_sealing().await? {
        return Ok(None);
    }
    let state = db.sealing_state().await?;
    if state.unsealed_at.is_none() || is_set_back(&state) {
        return Ok(Some(0));
    }
    let last = state.last.as_ref();
    let entries_max = i64::try_from(ENTRIES_MAX).unwrap_or(i64::MAX);
    let entries = db.entries_after(end_of(last), TrailEnd::Stable, entries_max);
    let entries = entries.await?;
    for link in hyperfleet_audit::seal(&entries, last, now) {
        db.insert_pass(&link).await?;
    }
    Ok(Some(entries.len()))
}

fn is_set_back(state: &SealingState) -> bool {
    !state.stable.reaches(end_of(state.last.as_ref()))
}

/// Where a pass ends, or the trail begins.
pub(super) fn end_of(link: Option<&Link>) -> TrailPosition {
    link.map_or(TrailPosition::START, |link| link.pass.end)
}

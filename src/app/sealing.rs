//! Seals the audit trail behind the writes (`docs/decisions/0076-audit-seals.md`).

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Error, Service};
use crate::domain::audit::seal_all;
use crate::storage::postgres::Db;

/// Entries that one transaction seals at most.
const ENTRIES_MAX: usize = 5_000;

/// The part of the trail that is not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsealedTail {
    /// The age of its first entry; unset if it is empty.
    pub age: Option<TimeDelta>,
    /// Whether new entries can get positions before the last seal, because the database was set back and no new era was
    /// begun. Then nothing is sealed.
    pub is_set_back: bool,
}

/// What a pass has sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedPass {
    /// This number of entries; if `is_full`, there may be more.
    Entries { count: usize, is_full: bool },
    /// Nothing: another instance is sealing.
    Busy,
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
            is_set_back: !state.settled.reaches(state.last_pass.end),
        })
    }

    /// Seals settled entries, in one transaction, unless another instance does. No other transaction waits for it.
    pub async fn seal_audit(&self, now: DateTime<Utc>) -> Result<SealedPass, Error> {
        let mut tx = self.store.begin().await?;
        let result = seal(&mut tx.db(), now).await;
        tx.finish(result).await
    }
}

async fn seal(db: &mut Db<'_>, now: DateTime<Utc>) -> Result<SealedPass, Error> {
    if !db.lock_sealing().await? {
        return Ok(SealedPass::Busy);
    }
    let state = db.sealing_state().await?;
    let nothing = SealedPass::Entries {
        count: 0,
        is_full: false,
    };
    let last = state.last_pass;
    if !state.settled.reaches(last.end) || state.unsealed_at.is_none() {
        return Ok(nothing);
    }
    let entries_max = i64::try_from(ENTRIES_MAX).unwrap_or(i64::MAX);
    let entries = db.settled_after(last.end, entries_max).await?;
    if entries.is_empty() {
        return Ok(nothing);
    }
    let tenancies: BTreeSet<_> = entries.iter().map(|entry| &entry.entry.tenancy).collect();
    let tenancies: Vec<_> = tenancies.into_iter().collect();
    let mut heads = db.chain_heads(&tenancies).await?;
    let seals = seal_all(&entries, last, &mut heads, now);
    db.insert_seals(&seals).await?;
    Ok(SealedPass::Entries {
        count: entries.len(),
        is_full: entries.len() == ENTRIES_MAX,
    })
}

//! What retention has removed, and whether it could have done so.
//!
//! Retention removes whole passes, the oldest ones first. It marks their seals, and keeps the last marked seal of each chain.
//! So all seals of the last removed pass stay: their digest is checked, and the first pass that is left names it.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::pass::pass_hash;
use super::{ChainHead, PassHead, Seal, TrailFault, TrailFaultKind};
use crate::domain::Tenancy;

/// Shortest retention of audit entries: a typing error must not empty the trail.
pub const RETENTION_MIN: Duration = Duration::from_hours(1);

/// How much earlier than the clock of retention that of a verification may be.
const CLOCK_DIFFERENCE_MAX: TimeDelta = TimeDelta::minutes(1);

/// A seal with the mark of retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedSeal {
    pub seal: Seal,
    pub removed_at: DateTime<Utc>,
    /// Retention removed entries before this time. It always sets it: a mark without it is forged.
    pub removed_before: Option<DateTime<Utc>>,
}

/// The age from which entries may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionRule {
    expired_before: DateTime<Utc>,
}

impl RetentionRule {
    /// `kept` is the retention; if it is unknown, the shortest one that the service accepts.
    pub fn new(now: DateTime<Utc>, kept: Option<Duration>) -> Self {
        let kept = kept.unwrap_or_default().max(RETENTION_MIN);
        let kept = TimeDelta::from_std(kept).unwrap_or(TimeDelta::MAX);
        let before = now
            .checked_add_signed(CLOCK_DIFFERENCE_MAX)
            .and_then(|now| now.checked_sub_signed(kept));
        Self {
            expired_before: before.unwrap_or(DateTime::<Utc>::MIN_UTC),
        }
    }

    fn has_expired(self, seal: &Seal) -> bool {
        seal.newest_at < self.expired_before
    }
}

impl RemovedSeal {
    /// Whether the mark is one that retention makes.
    fn is_sound(&self, rule: RetentionRule) -> bool {
        let is_expired = |before: DateTime<Utc>| {
            self.seal.newest_at < before
                && (self.removed_at - before)
                    .to_std()
                    .is_ok_and(|kept| kept >= RETENTION_MIN)
        };
        self.removed_before.is_some_and(is_expired) && rule.has_expired(&self.seal)
    }
}

/// The removed part of the trail: the last marked seal of each chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedPart {
    seals: BTreeMap<Tenancy, RemovedSeal>,
}

impl FromIterator<RemovedSeal> for RemovedPart {
    fn from_iter<T: IntoIterator<Item = RemovedSeal>>(seals: T) -> Self {
        let seals = seals.into_iter();
        Self {
            seals: seals
                .map(|removed| (removed.seal.tenancy.clone(), removed))
                .collect(),
        }
    }
}

impl RemovedPart {
    /// The ends of the removed chains.
    pub fn heads(&self) -> BTreeMap<Tenancy, ChainHead> {
        let seals = self.seals.iter();
        seals
            .map(|(tenancy, removed)| (tenancy.clone(), removed.seal.head()))
            .collect()
    }

    /// The last removed pass.
    pub fn last_pass(&self) -> PassHead {
        let seals = self.seals.values().map(|removed| &removed.seal);
        let last = seals.max_by_key(|seal| seal.end);
        last.map(Seal::pass).unwrap_or_default()
    }

    /// Marks that retention does not make, and a last removed pass whose seals are not those that it was sealed with.
    pub fn faults(&self, rule: RetentionRule) -> Vec<TrailFault> {
        let unsound = self
            .seals
            .values()
            .filter(|removed| !removed.is_sound(rule));
        let mut faults: Vec<_> = unsound.map(|removed| early(&removed.seal)).collect();
        let end = self.last_pass().end;
        let seals = self.seals.values().map(|removed| &removed.seal);
        let last: Vec<_> = seals.filter(|seal| seal.end == end).collect();
        let hash = pass_hash(last.iter().copied());
        let changed = last.iter().find(|seal| seal.pass_hash != hash);
        faults.extend(changed.map(|seal| TrailFaultKind::Pass.of(seal)));
        faults
    }

    /// The fault of a seal of an earlier export that is missing; `None` if retention has removed it.
    pub fn fault_of_missing(&self, exported: &Seal, rule: RetentionRule) -> Option<TrailFault> {
        let head = self.seals.get(&exported.tenancy);
        if head.is_none_or(|head| exported.number >= head.seal.number) {
            return Some(TrailFaultKind::Missing.of(exported));
        }
        // The latest mark of any chain: its retention removed everything before, even if a longer one did so.
        let marks = self.seals.values();
        let before = marks.filter_map(|removed| removed.removed_before).max();
        let is_before = before.is_some_and(|before| exported.newest_at < before);
        let has_expired = is_before && rule.has_expired(exported);
        (!has_expired).then(|| early(exported))
    }
}

fn early(seal: &Seal) -> TrailFault {
    let newest_at = seal.newest_at;
    TrailFaultKind::Early { newest_at }.of(seal)
}

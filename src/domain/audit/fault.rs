//! Faults of the audit trail that a verification finds.

use std::fmt;

use chrono::{DateTime, Utc};
use strum::IntoStaticStr;

use super::{Seal, TrailPosition};
use crate::domain::Tenancy;
use crate::domain::moment::whole_seconds;

/// Faults that a report lists; further ones are only counted.
pub const FAULTS_SHOWN_MAX: usize = 1_000;

/// Where the trail is not what was sealed, and how it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailFault {
    pub kind: TrailFaultKind,
    pub tenancy: Tenancy,
    /// Number of the seal; unset for entries without one.
    pub number: Option<i64>,
    /// The part of the trail: after this position,
    pub begin: TrailPosition,
    /// up to and with this one.
    pub end: TrailPosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TrailFaultKind {
    /// The chain goes on with another number.
    Number { expected: i64 },
    /// The previous hash is not that of the seal before.
    Link,
    /// Entries were removed or added.
    Entries { found: i32, sealed: i32 },
    /// Entries were changed or exchanged.
    Hash,
    /// Entries before the end of a pass are in no seal.
    Unsealed { entries: i32 },
    /// The pass does not begin where the one before it ended.
    Gap { ended: TrailPosition },
    /// The seals of the pass have another digest than the pass: one is missing, was added, or was changed.
    Pass,
    /// The pass names another digest than that of the pass before.
    PassLink,
    /// The last entry of the pass has another position, or the newest one another time.
    Bounds,
    /// Begin, times or digests differ from those of the pass's other seals.
    Uneven,
    /// An entry stands after a later one (exports only).
    Order,
    /// A line is neither an entry nor a seal (exports only).
    Unreadable { line: u64 },
    /// A seal is not marked as removed, although later ones are.
    Unmarked,
    /// The seal was removed although retention keeps entries of this time.
    Early { newest_at: DateTime<Utc> },
    /// An earlier export has the seal with another content.
    Rewritten,
    /// An earlier export has the seal, and retention has not removed it.
    Missing,
}

impl TrailFaultKind {
    pub fn name(self) -> &'static str {
        self.into_str()
    }

    pub fn of(self, seal: &Seal) -> TrailFault {
        TrailFault {
            kind: self,
            tenancy: seal.tenancy.clone(),
            number: Some(seal.number),
            begin: seal.begin,
            end: seal.end,
        }
    }
}

impl fmt::Display for TrailFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { expected } => write!(f, "seal {expected} was expected here"),
            Self::Link => f.write_str("its previous hash is not the hash of the seal before it"),
            Self::Entries { found, sealed } => {
                write!(f, "entries sealed: {sealed}, found: {found}")
            }
            Self::Hash => f.write_str("its entries are not those that were sealed"),
            Self::Unsealed { entries } => write!(f, "entries without a seal: {entries}"),
            Self::Gap { ended } => write!(f, "the pass before it ended at {ended}"),
            Self::Pass => f.write_str("seals of its pass were removed, added or changed"),
            Self::PassLink => {
                f.write_str("the pass before it is not the one that it was sealed after")
            }
            Self::Bounds => f.write_str("its end or newest time is not that of the entries"),
            Self::Uneven => {
                f.write_str("it differs from other seals of its pass in begin, times or digests")
            }
            Self::Order => f.write_str("an entry follows one with a later position"),
            Self::Unreadable { line } => write!(f, "line {line} is neither an entry nor a seal"),
            Self::Unmarked => f.write_str("it is not marked as removed, although later seals are"),
            Self::Early { newest_at } => {
                let newest = whole_seconds(*newest_at);
                write!(
                    f,
                    "it was removed too early: its newest entry is of {newest}"
                )
            }
            Self::Rewritten => f.write_str("the earlier export has another content"),
            Self::Missing => f.write_str("the earlier export has it, and it is missing"),
        }
    }
}

/// Faults, the first ones as a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrailFaults {
    pub first: Vec<TrailFault>,
    pub total: u64,
}

impl TrailFaults {
    pub fn push(&mut self, fault: TrailFault) {
        self.total += 1;
        if self.first.len() < FAULTS_SHOWN_MAX {
            self.first.push(fault);
        }
    }
}

impl Extend<TrailFault> for TrailFaults {
    fn extend<T: IntoIterator<Item = TrailFault>>(&mut self, faults: T) {
        faults.into_iter().for_each(|fault| self.push(fault));
    }
}

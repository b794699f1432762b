//! Reads the lines of an export.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{ChainHash, Seal, TrailPosition};
use crate::domain::{Tenancy, moment};

/// A line of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportRecord {
    Entry(EntryRecord),
    Seal(Seal),
}

/// The members of an entry's line that place it in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRecord {
    pub position: TrailPosition,
    pub tenancy: Tenancy,
    pub at: DateTime<Utc>,
}

impl ExportRecord {
    /// Reads a line without its line break; `None` if it is neither an entry nor a seal.
    pub fn parse(line: &str) -> Option<Self> {
        let parsed: Line = serde_json::from_str(line).ok()?;
        match parsed {
            Line::Seal { seal } => seal.seal().map(Self::Seal),
            Line::Entry(entry) => Some(Self::Entry(EntryRecord {
                position: TrailPosition::parse(&entry.position)?,
                tenancy: entry.tenancy,
                at: moment::parse(&entry.time)?,
            })),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Seal { seal: SealMembers },
    Entry(EntryMembers),
}

#[derive(Deserialize)]
struct EntryMembers {
    position: String,
    tenancy: Tenancy,
    time: String,
}

#[derive(Deserialize)]
struct SealMembers {
    begin: String,
    end: String,
    entries: i32,
    hash: String,
    newest_time: String,
    number: i64,
    previous: String,
    sealed_time: String,
    tenancy: Tenancy,
}

impl SealMembers {
    fn seal(self) -> Option<Seal> {
        Some(Seal {
            tenancy: self.tenancy,
            number: self.number,
            begin: TrailPosition::parse(&self.begin)?,
            end: TrailPosition::parse(&self.end)?,
            entries: self.entries,
            newest_at: moment::parse(&self.newest_time)?,
            previous: ChainHash::parse(&self.previous)?,
            hash: ChainHash::parse(&self.hash)?,
            sealed_at: moment::parse(&self.sealed_time)?,
        })
    }
}

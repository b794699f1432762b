//! The lines of an export. Hashes cover their exact text, so it must never change: members sorted by name, unset members
//! absent, no blanks, times in UTC with six digits.

use std::fmt;
use std::io::{self, BufRead, Read as _};
use std::iter;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Hash, Tenancy, TrailPosition};
use crate::tree;

/// Longest line that is read, in bytes: an entry with the longest path has a few kilobytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// A line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// The end of a pass, after its entries.
    Link(Link),
    /// An entry of a tenant's export.
    Proven(ProvenEntry),
    Entry(AuditEntry),
    /// The begin of a tenant's export.
    Tenant {
        tenancy: Tenancy,
    },
}

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub action: String,
    pub actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_after: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_before: Option<i32>,
    pub kind: String,
    pub name: String,
    pub position: TrailPosition,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub request_id: String,
    pub resource_id: String,
    /// Later changes of a resource have higher numbers. An entry may appear after one with a higher number.
    pub sequence: i64,
    pub tenancy: Tenancy,
    /// When the service began to work on the request.
    #[serde(rename = "time", serialize_with = "micros")]
    pub at: DateTime<Utc>,
}

/// The header of a pass: what its hash covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Position of its last entry. It begins after the end of the pass before.
    pub end: TrailPosition,
    /// Number of its entries.
    pub entries: i32,
    /// Time of the newest entry up to its end, in this pass or in an earlier one.
    #[serde(rename = "newest_time", serialize_with = "micros")]
    pub newest_at: DateTime<Utc>,
    /// 1, 2, …; 0 for the origin.
    pub number: i64,
    /// Hash of the pass before.
    pub previous: Hash,
    /// Root of the tree of its entries.
    pub root: Hash,
    #[serde(rename = "sealed_time", serialize_with = "micros")]
    pub sealed_at: DateTime<Utc>,
}

/// A pass with its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub hash: Hash,
    pub pass: Pass,
}

/// An entry with the proof that it is in its pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenEntry {
    pub entry: AuditEntry,
    /// Its place among the entries of the pass, from 0.
    pub index: u64,
    /// The hashes beside its way to the root, from below.
    pub path: Vec<Hash>,
}

impl Line {
    /// Reads a line without its line break; `None` if it is not exactly the text of a [`Line`].
    pub fn parse(text: &[u8]) -> Option<Self> {
        let line: Self = serde_json::from_slice(text).ok()?;
        (line.to_string().as_bytes() == text).then_some(line)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&json(self))
    }
}

impl AuditEntry {
    pub(crate) fn hash(&self) -> Hash {
        tree::leaf(&json(self))
    }
}

impl Pass {
    pub(crate) fn hash(&self) -> Hash {
        Hash::of(&[json(self).as_bytes()])
    }

    /// The pass with its hash.
    pub(crate) fn link(self) -> Link {
        Link {
            hash: self.hash(),
            pass: self,
        }
    }
}

/// Reads the lines of an export; `None` stands for one that is no [`Line`]. One that is too long is divided, so that it is
/// none.
pub fn read_lines(mut file: impl BufRead) -> impl Iterator<Item = io::Result<Option<Line>>> {
    iter::from_fn(move || {
        let mut text = Vec::new();
        match file
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut text)
        {
            Ok(0) => None,
            Ok(_) => Some(Ok(Line::parse(text.strip_suffix(b"\n").unwrap_or(&text)))),
            Err(error) => Some(Err(error)),
        }
    })
}

fn json(value: &impl Serialize) -> String {
    // Texts, numbers and lists of them: there is no value that JSON does not have.
    serde_json::to_string(value).unwrap_or_default()
}

fn micros<S: serde::Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
}

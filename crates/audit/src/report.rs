//! The report of a verification, as JSON and as text.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use super::{Link, Pass, RetentionRule, Tenancy, TrailPosition};

/// Faults that a report lists; further ones are only counted.
pub const FAULTS_LISTED_MAX: usize = 1_000;

/// What was verified, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// The tenant of a tenant's export.
    pub tenancy: Option<Tenancy>,
    /// The first pass whose entries were verified.
    pub first: Option<Link>,
    /// The end of the chain.
    pub last: Option<Link>,
    /// Entries that were found in passes.
    pub entries: u64,
    pub unsealed: UnsealedEntries,
    pub removed: Option<Removed>,
    /// The comparison with an earlier export.
    pub compared: Option<Compared>,
    pub fault_count: u64,
    pub faults: Vec<AuditFault>,
}

/// Entries after the last pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UnsealedEntries {
    pub entries: u64,
    #[serde(rename = "oldest_time")]
    pub oldest_at: Option<DateTime<Utc>>,
}

/// What retention has removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The time of the newest removed entry.
    #[serde(rename = "newest_time")]
    pub newest_at: DateTime<Utc>,
    /// The age with which it was compared.
    pub checked: String,
    /// Entries that it has still to remove.
    pub entries_left: i64,
}

/// How many links of an earlier export were compared, and how many of these retention has removed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub passes: u64,
    pub expired: u64,
}

/// Where the trail is not what was sealed, and how it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFault {
    pub kind: FaultKind,
    pub message: String,
    /// Number of the pass.
    pub number: Option<i64>,
    /// The pass begins after this position, if it is known.
    pub begin: Option<TrailPosition>,
    /// Position of its last entry.
    pub end: Option<TrailPosition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The pass does not follow the previous pass.
    Link,
    /// A link has a hash that does not fit its content.
    Hash,
    /// Entries of the pass were removed, added, changed or exchanged.
    Entries,
    /// A line is neither an entry nor a pass (exports only).
    Unreadable,
    /// The pass was removed although retention keeps entries of this time.
    Early,
    /// An earlier export has the pass with another content.
    Rewritten,
    /// An earlier export has the pass, or its hash was noted, and it is missing.
    Missing,
}

impl UnsealedEntries {
    pub(crate) fn add(&mut self, at: DateTime<Utc>) {
        self.entries += 1;
        self.oldest_at = Some(self.oldest_at.map_or(at, |oldest| oldest.min(at)));
    }
}

impl AuditReport {
    /// Adds a fault, of a pass or of none. While a chain is verified, `last` is the pass before.
    pub(crate) fn fault(
        &mut self,
        kind: FaultKind,
        message: impl Into<String>,
        pass: Option<&Pass>,
    ) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_LISTED_MAX {
            let before = self.last.as_ref().map(|last| &last.pass);
            let before = before.filter(|last| pass.is_some_and(|pass| last.end < pass.end));
            self.faults.push(AuditFault {
                kind,
                message: message.into(),
                number: pass.map(|pass| pass.number),
                begin: before.map(|before| before.end),
                end: pass.map(|pass| pass.end),
            });
        }
    }

    /// Checks the first stored link: retention has removed everything up to its end, except `entries_left` entries.
    pub fn check_removed(&mut self, first: &Link, entries_left: i64, rule: RetentionRule) {
        let pass = &first.pass;
        if pass.number == 0 {
            return;
        }
        self.removed = Some(Removed {
            newest_at: pass.newest_at,
            checked: rule.to_string(),
            entries_left,
        });
        if !rule.has_expired(pass) {
            self.early(pass);
        }
    }

    /// Compares a link of an earlier export with the stored link of the same number. `first` is the first stored link.
    pub fn compare(
        &mut self,
        exported: &Link,
        stored: Option<&Link>,
        first: Option<&Link>,
        rule: RetentionRule,
    ) {
        let compared = self.compared.get_or_insert_default();
        compared.passes += 1;
        let pass = &exported.pass;
        let is_before = first.is_some_and(|first| pass.number < first.pass.number);
        match stored {
            Some(stored) if stored == exported => {}
            Some(_) => {
                let message = "the earlier export has another content";
                self.fault(FaultKind::Rewritten, message, Some(pass));
            }
            None if is_before && rule.has_expired(pass) => compared.expired += 1,
            None if is_before => self.early(pass),
            None => {
                let message = "the earlier export has it, and it is missing";
                self.fault(FaultKind::Missing, message, Some(pass));
            }
        }
    }

    fn early(&mut self, pass: &Pass) {
        let newest = seconds(pass.newest_at);
        let message = format!("it was removed too early: its newest entry is of {newest}");
        self.fault(FaultKind::Early, message, Some(pass));
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tenancy) = &self.tenancy {
            let dimensions = tenancy.iter().map(|(key, value)| format!("{key}={value}"));
            let dimensions = dimensions.collect::<Vec<_>>().join(",");
            writeln!(f, "Entries of one tenant: {dimensions}.")?;
        }
        if let (Some(Link { pass: first, .. }), Some(Link { pass: last, .. })) =
            (&self.first, &self.last)
        {
            let (from, to) = (seconds(first.sealed_at), seconds(last.sealed_at));
            write!(
                f,
                "Passes {} to {}, sealed from {from} to {to}. ",
                first.number, last.number
            )?;
            writeln!(f, "Entries: {}.", self.entries)?;
        }
        if let Some(Link { hash, pass }) = &self.last {
            writeln!(f, "Hash of pass {}: {hash}", pass.number)?;
        }
        write!(f, "Entries not sealed yet: {}", self.unsealed.entries)?;
        if let Some(oldest) = self.unsealed.oldest_at {
            write!(f, ", the oldest of {}", seconds(oldest))?;
        }
        writeln!(f, ".")?;
        if let Some(removed) = &self.removed {
            let (newest, checked) = (seconds(removed.newest_at), &removed.checked);
            writeln!(
                f,
                "Removed by retention: entries up to {newest}. Checked: older than {checked}."
            )?;
            let left = removed.entries_left;
            writeln!(f, "Entries that retention has still to remove: {left}.")?;
        }
        if let Some(Compared { passes, expired }) = self.compared {
            writeln!(
                f,
                "Compared with the export: {passes} passes, of which retention has removed {expired}."
            )?;
        }
        match self.fault_count {
            0 => writeln!(f, "No faults."),
            count => writeln!(f, "Faults: {count}."),
        }?;
        self.faults
            .iter()
            .try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

impl fmt::Display for AuditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((number, end)) = self.number.zip(self.end) {
            write!(f, "pass {number}")?;
            let begin = self.begin.map(|begin| write!(f, ", after {begin}"));
            begin.unwrap_or(Ok(()))?;
            write!(f, " up to {end}: ")?;
        }
        f.write_str(&self.message)
    }
}

fn seconds(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

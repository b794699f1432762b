//! The lines of an export.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::line::ObjectText;
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
            Line::Seal { pass_hash, seal } => seal.seal(&pass_hash).map(Self::Seal),
            Line::Entry(entry) => Some(Self::Entry(EntryRecord {
                position: TrailPosition::parse(&entry.position)?,
                tenancy: entry.tenancy,
                at: moment::parse(&entry.time)?,
            })),
        }
    }
}

impl Seal {
    /// Its line, without the line break: its text beside the digest of its pass.
    pub fn line(&self) -> String {
        let (pass_hash, text) = (self.pass_hash, self.text());
        format!("{{\"pass_hash\":\"{pass_hash}\",\"seal\":{text}}}")
    }

    /// Everything but the digest of its pass, which covers this text.
    pub(super) fn text(&self) -> String {
        let mut object = ObjectText::default();
        object.text("begin", &self.begin.to_string());
        object.text("end", &self.end.to_string());
        object.number("entries", self.entries.into());
        object.text("hash", &self.hash.to_string());
        object.time("newest_time", self.newest_at);
        object.number("number", self.number);
        object.text("pass_previous", &self.pass_previous.to_string());
        object.text("previous", &self.previous.to_string());
        object.time("sealed_time", self.sealed_at);
        object.tenancy("tenancy", &self.tenancy);
        object.end()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Seal {
        pass_hash: String,
        seal: SealMembers,
    },
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
    pass_previous: String,
    previous: String,
    sealed_time: String,
    tenancy: Tenancy,
}

impl SealMembers {
    fn seal(self, pass_hash: &str) -> Option<Seal> {
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
            pass_previous: ChainHash::parse(&self.pass_previous)?,
            pass_hash: ChainHash::parse(pass_hash)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_seal_never_change() {
        let seal = Seal {
            tenancy: [("org".to_owned(), "acme".to_owned())].into(),
            number: 1,
            begin: TrailPosition::START,
            end: TrailPosition::parse("0-7432-12").unwrap(),
            entries: 2,
            newest_at: "2026-01-01T10:00:03.5Z".parse().unwrap(),
            previous: ChainHash::ZERO,
            hash: ChainHash([0xab; 32]),
            sealed_at: "2026-01-01T10:00:05Z".parse().unwrap(),
            pass_previous: ChainHash([0xcd; 32]),
            pass_hash: ChainHash([0xef; 32]),
        };
        let [zero, hash, before, pass] = ["00", "ab", "cd", "ef"].map(|byte| byte.repeat(32));
        let expected = format!(
            concat!(
                r#"{{"pass_hash":"{pass}","seal":{{"begin":"start","end":"0-7432-12","entries":2,"hash":"{hash}","#,
                r#""newest_time":"2026-01-01T10:00:03.500000Z","number":1,"pass_previous":"{before}","previous":"{zero}","#,
                r#""sealed_time":"2026-01-01T10:00:05.000000Z","tenancy":{{"org":"acme"}}}}}}"#,
            ),
            pass = pass,
            hash = hash,
            before = before,
            zero = zero
        );
        assert_eq!(seal.line(), expected);
    }
}

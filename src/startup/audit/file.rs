//! Reads exports line by line, and verifies them without a database.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;

use super::opened;
use crate::domain::audit::{ExportRecord, TrailVerifier, VerifiedRange, VerifiedTrail};

/// Longest line that is read, in bytes: a reason and a name are far shorter.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The lines of an export.
pub(super) struct ExportLines {
    file: BufReader<File>,
    name: String,
    line: Vec<u8>,
    number: u64,
}

impl ExportLines {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            file: BufReader::new(opened(path)?),
            name: path.display().to_string(),
            line: Vec::new(),
            number: 0,
        })
    }

    /// The next line without its line break. One that is too long is divided, so that it is unreadable.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<&[u8]>> {
        self.line.clear();
        let mut limited = (&mut self.file).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.line);
        let read = read.with_context(|| format!("cannot read {}", self.name))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(self.line.strip_suffix(b"\n").unwrap_or(&self.line)))
    }

    /// Number of the last line.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

/// The text of a line, and what it is.
pub(super) fn record(line: &[u8]) -> Option<(&str, ExportRecord)> {
    let line = std::str::from_utf8(line).ok()?;
    Some((line, ExportRecord::parse(line)?))
}

pub(super) fn unreadable(path: &Path, line: u64) -> String {
    let path = path.display();
    format!("{path}: line {line} is neither an entry nor a seal")
}

/// Verifies an export. Reads it twice: the first seal of each chain says how its first entries are hashed.
pub(super) fn verify(path: &Path) -> anyhow::Result<VerifiedTrail> {
    let mut firsts = Vec::new();
    let mut tenancies = BTreeSet::new();
    let mut lines = ExportLines::open(path)?;
    while let Some(line) = lines.next()? {
        if let Some((_, ExportRecord::Seal(seal))) = record(line)
            && tenancies.insert(seal.tenancy.clone())
        {
            firsts.push(seal);
        }
    }
    let mut verifier = TrailVerifier::new(VerifiedRange {
        is_within: true,
        // The export of one tenant leaves out the passes of others.
        is_partial: tenancies.len() < 2,
        ..VerifiedRange::default()
    });
    for seal in &firsts {
        verifier.expect(seal);
    }
    let mut lines = ExportLines::open(path)?;
    while let Some(line) = lines.next()? {
        match record(line) {
            Some((line, ExportRecord::Entry(entry))) => verifier.entry(&entry, line),
            Some((_, ExportRecord::Seal(seal))) => verifier.seal(&seal),
            None => verifier.unreadable(lines.number()),
        }
    }
    Ok(verifier.finish())
}

//! Writes a range: the entries of each pass, then its seals.

use std::io;

use super::pages::{EntryPages, PassPages};
use super::{Observe, TrailProgress, TrailRange, TrailReader};
use crate::app::Error;
use crate::domain::Tenancy;

/// Takes the lines, each without its line break.
pub type ExportSink<'a> = &'a mut (dyn FnMut(&str) -> io::Result<()> + Send);

/// Entries between two calls of the observer.
const OBSERVED_EVERY: u64 = 1_000;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportedTrail {
    pub entries: u64,
    pub seals: u64,
}

impl TrailReader {
    /// Writes the entries and seals of a range, of all tenancies or of one. Without an end the settled entries that are
    /// not sealed yet follow. A failure of the sink ends it, and is the inner result.
    pub async fn export(
        &mut self,
        range: TrailRange,
        tenancy: Option<&Tenancy>,
        sink: ExportSink<'_>,
        observe: Observe<'_>,
    ) -> Result<io::Result<ExportedTrail>, Error> {
        let passes = self.passes(range).await?;
        let mut pages = PassPages::new(passes.begin, passes.end);
        let end = range.until.map(|_| passes.end);
        let mut entries = EntryPages::new(passes.begin, end);
        let is_exported = |of: &Tenancy| tenancy.is_none_or(|tenancy| tenancy == of);
        let mut done = ExportedTrail::default();
        let mut read = 0;
        let mut db = self.tx.db();
        loop {
            let seals = pages.next(&mut db).await?;
            let pass_end = seals.first().map(|seal| seal.end);
            while let Some(entry) = entries.next_up_to(&mut db, pass_end).await? {
                read += 1;
                if read % OBSERVED_EVERY == 0 {
                    let at = entry.entry.origin.at;
                    observe(TrailProgress { entries: read, at });
                }
                if is_exported(&entry.entry.tenancy) {
                    if let Err(error) = sink(&entry.line()) {
                        return Ok(Err(error));
                    }
                    done.entries += 1;
                }
            }
            for seal in seals.iter().filter(|seal| is_exported(&seal.tenancy)) {
                if let Err(error) = sink(&seal.line()) {
                    return Ok(Err(error));
                }
                done.seals += 1;
            }
            if pass_end.is_none() {
                return Ok(Ok(done));
            }
        }
    }
}

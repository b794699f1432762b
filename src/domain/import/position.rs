//! Identifies the state of the source that a run reads, and decides whether it has everything that was imported
//! before.

use crate::domain::ResourceId;

/// A page of PostgreSQL's write-ahead log, in bytes.
const WAL_PAGE: i64 = 8192;
/// Sizes of a page's header: of most pages, and of the first one of a file.
const WAL_PAGE_HEADERS: [i64; 2] = [24, 40];

/// A state of the source, by its server's identifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// Server and database: copies of the server's files have the same.
    pub source: String,
    /// The number of the table of resources: it changes when the table is restored from a dump.
    pub table: i64,
    /// Every transaction before this one had ended. Rows that it or a later one has written may be missing.
    pub transaction: i64,
    /// Changes when the server is promoted or recovered from a backup.
    pub timeline: i32,
    /// Bytes of the write-ahead log in the state, at least.
    pub wal_bytes_min: i64,
    /// Bytes of the write-ahead log in the state, at most.
    pub wal_bytes_max: i64,
}

/// The states of the source that this database has imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedPosition {
    pub source: String,
    /// Everything that earlier transactions have written is here.
    pub since: i64,
    /// The latest state of which anything is here; unset by versions that did not record it.
    pub latest: Option<LatestState>,
}

/// The latest state of the source of which anything is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatestState {
    /// As of [`SourcePosition`].
    pub table: i64,
    /// As of [`SourcePosition`].
    pub transaction: i64,
    /// As of [`SourcePosition`].
    pub timeline: i32,
    pub wal_bytes: i64,
}

/// The relation of a source to what was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// It has everything that was imported.
    Continued,
    /// It may lack some of it.
    Regressed(Regression),
    Other,
}

/// Why a source may lack what was imported from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Regression {
    /// Its log ends before the one that was read.
    #[error(
        "it is older than the state that was imported last: a lagging standby, or an older copy"
    )]
    Behind,
    /// Its log may have branched off before the state that was read.
    #[error("it was promoted or recovered from a backup since the last import")]
    Timeline,
    /// Generations never fall in the older service.
    #[error(
        "{count} of its resources have a lower generation than was imported, {first} for instance: \
         a backup was restored"
    )]
    Generations {
        count: usize,
        /// One of them.
        first: ResourceId,
    },
}

impl SourcePosition {
    /// Whether the source has everything that was imported from it.
    pub fn continuity(&self, before: &ImportedPosition) -> Continuity {
        if self.source != before.source {
            return Continuity::Other;
        }
        let Some(latest) = before.latest else {
            return if self.transaction < before.since {
                Continuity::Regressed(Regression::Behind)
            } else {
                Continuity::Continued
            };
        };
        if self.table != latest.table {
            Continuity::Other
        } else if self.wal_bytes_min < latest.wal_bytes || self.transaction < latest.transaction {
            Continuity::Regressed(Regression::Behind)
        } else if self.timeline != latest.timeline {
            Continuity::Regressed(Regression::Timeline)
        } else {
            Continuity::Continued
        }
    }

    /// What later runs are compared with.
    pub fn latest(&self) -> LatestState {
        LatestState {
            table: self.table,
            transaction: self.transaction,
            timeline: self.timeline,
            wal_bytes: without_header(self.wal_bytes_max),
        }
    }
}

/// The end of the last record. A writing server counts the header of the next page, a standby does not.
fn without_header(bytes: i64) -> i64 {
    let in_page = bytes % WAL_PAGE;
    if WAL_PAGE_HEADERS.contains(&in_page) {
        bytes - in_page
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> SourcePosition {
        SourcePosition {
            source: "7/16384".to_owned(),
            table: 16_390,
            transaction: 900,
            timeline: 1,
            wal_bytes_min: 50_000,
            wal_bytes_max: 50_100,
        }
    }

    fn imported() -> ImportedPosition {
        ImportedPosition {
            source: position().source,
            since: 800,
            latest: Some(position().latest()),
        }
    }

    #[test]
    fn a_source_must_have_come_as_far_as_the_imported_state() {
        use Continuity::{Continued, Other, Regressed};
        let far = SourcePosition {
            wal_bytes_min: 50_100,
            ..position()
        };
        let but = |change: fn(&mut SourcePosition)| {
            let mut changed = far.clone();
            change(&mut changed);
            changed.continuity(&imported())
        };
        assert_eq!(but(|_| ()), Continued);
        assert_eq!(
            but(|p| p.wal_bytes_min = 50_099),
            Regressed(Regression::Behind)
        );
        assert_eq!(but(|p| p.transaction = 899), Regressed(Regression::Behind));
        assert_eq!(but(|p| p.timeline = 2), Regressed(Regression::Timeline));
        assert_eq!(but(|p| p.source = "8/16384".to_owned()), Other);
        assert_eq!(but(|p| p.table = 20_000), Other);
    }

    #[test]
    fn of_an_import_by_an_older_version_only_transactions_are_known() {
        let before = ImportedPosition {
            latest: None,
            ..imported()
        };
        assert_eq!(position().continuity(&before), Continuity::Continued);
        let older = SourcePosition {
            transaction: 799,
            ..position()
        };
        assert_eq!(
            older.continuity(&before),
            Continuity::Regressed(Regression::Behind)
        );
    }

    #[test]
    fn the_header_of_an_empty_page_does_not_count() {
        for (bytes, expected) in [
            (WAL_PAGE * 9, WAL_PAGE * 9),
            (WAL_PAGE * 9 + 24, WAL_PAGE * 9),
            (WAL_PAGE * 9 + 40, WAL_PAGE * 9),
            (WAL_PAGE * 9 + 48, WAL_PAGE * 9 + 48),
        ] {
            assert_eq!(without_header(bytes), expected);
        }
    }
}

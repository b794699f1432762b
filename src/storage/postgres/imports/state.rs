//! Tables `imports` and `imported_resources`: what was imported, and its source.

use crate::domain::ResourceId;
use crate::domain::import::{ImportedKey, ImportedPosition, LatestState, SourcePosition};
use crate::storage::postgres::measure::SqlOperation::{Bulk, Raw};
use crate::storage::postgres::measure::SqlTable::{ImportedResources, Imports};
use crate::storage::postgres::{Db, Error, uuids};

/// The number of the advisory lock of imports; any number without another use.
const LOCK: i64 = 0x6879_7065_7266_0001;

/// What this database has imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportState {
    /// The imported state of the source; unset before the first import.
    pub position: Option<ImportedPosition>,
    /// Whether there are resources that were not imported.
    pub has_others: bool,
}

impl Db<'_> {
    /// Takes the lock of imports while the connection lives; false if another import has it.
    pub async fn lock_imports(&mut self) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "is_taken!""#, LOCK)
            .fetch_one(self.connection())
            .await;
        self.complete(result, Raw, "lock imports")
    }

    pub async fn unlock_imports(&mut self) -> Result<(), Error> {
        let result = sqlx::query_scalar!("SELECT pg_advisory_unlock($1)", LOCK)
            .fetch_one(self.connection())
            .await;
        self.complete(result, Raw, "unlock imports")?;
        Ok(())
    }

    pub async fn import_state(&mut self) -> Result<ImportState, Error> {
        let result = sqlx::query!(
            r#"SELECT i.source AS "source?", i.since AS "since?", i.latest_table, i.latest_transaction,
                      i.latest_timeline, i.latest_wal_bytes,
                      EXISTS (SELECT FROM resources r
                              WHERE NOT EXISTS (SELECT FROM imported_resources i WHERE i.id = r.id)) AS "has_others!"
               FROM (SELECT) one LEFT JOIN imports i ON true"#
        )
        .fetch_one(self.connection())
        .await;
        let row = self.complete(result, Bulk(Imports), "read the state of the import")?;
        let latest = row.latest_table.zip(row.latest_transaction);
        let latest = latest.zip(row.latest_timeline.zip(row.latest_wal_bytes));
        let latest = latest.map(
            |((table, transaction), (timeline, wal_bytes))| LatestState {
                table,
                transaction,
                timeline,
                wal_bytes,
            },
        );
        let position = row.source.zip(row.since);
        Ok(ImportState {
            position: position.map(|(source, since)| ImportedPosition {
                source,
                since,
                latest,
            }),
            has_others: row.has_others,
        })
    }

    pub async fn list_imported(&mut self) -> Result<Vec<ImportedKey>, Error> {
        let result = sqlx::query!(
            r#"SELECT i.id, i.is_complete, r.kind AS "kind?",
                      CASE WHEN r.revision = i.revision THEN r.generation END AS generation
               FROM imported_resources i LEFT JOIN resources r ON r.id = i.id"#
        )
        .fetch_all(self.connection())
        .await;
        let rows = self.complete(result, Bulk(ImportedResources), "list what was imported")?;
        let keys = rows.into_iter().map(|row| ImportedKey {
            id: row.id.into(),
            is_complete: row.is_complete,
            kind: row.kind,
            generation: row.generation,
        });
        Ok(keys.collect())
    }

    /// Records the state of the source that is about to be imported. Everything that transactions before `since` have
    /// written is here.
    pub async fn save_import_position(
        &mut self,
        position: &SourcePosition,
        since: i64,
    ) -> Result<(), Error> {
        let latest = position.latest();
        let result = sqlx::query!(
            "INSERT INTO imports (source, since, latest_table, latest_transaction, latest_timeline, latest_wal_bytes)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (only_one) DO UPDATE SET source = excluded.source, since = excluded.since,
                 latest_table = excluded.latest_table, latest_transaction = excluded.latest_transaction,
                 latest_timeline = excluded.latest_timeline, latest_wal_bytes = excluded.latest_wal_bytes",
            position.source,
            since,
            latest.table,
            latest.transaction,
            latest.timeline,
            latest.wal_bytes,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Bulk(Imports), "save the position of the import")?;
        Ok(())
    }

    /// Records of imported resources whether all their parts are here.
    pub async fn save_imported_parts(
        &mut self,
        ids: &[ResourceId],
        is_complete: bool,
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "UPDATE imported_resources SET is_complete = $2 WHERE id = ANY($1)",
            &uuids(ids.iter().copied()),
            is_complete,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Bulk(ImportedResources), "save what is complete")?;
        Ok(())
    }
}

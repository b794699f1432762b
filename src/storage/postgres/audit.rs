//! Table `audit_entries`: the trail of changes.

use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Row as _};
use uuid::Uuid;

use crate::domain::Tenancy;
use crate::domain::audit::{
    AuditEntry, Change, ChangeOrigin, SettledTrail, TrailEntry, TrailPosition,
};

impl FromRow<'_, PgRow> for AuditEntry {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let action: &str = row.try_get("action")?;
        let action = action
            .parse()
            .map_err(|_| sqlx::Error::decode(format!("a stored action is impossible: {action}")))?;
        let tenancy: Json<Tenancy> = row.try_get("tenancy")?;
        Ok(Self {
            sequence: row.try_get("sequence")?,
            origin: ChangeOrigin {
                actor: row.try_get("actor")?,
                request_id: row.try_get("request_id")?,
                at: row.try_get("at")?,
            },
            change: Change {
                action,
                kind: row.try_get("kind")?,
                id: row.try_get::<Uuid, _>("resource_id")?.into(),
                name: row.try_get("name")?,
                generation_before: row.try_get("generation_before")?,
                generation_after: row.try_get("generation_after")?,
                reason: row.try_get("reason")?,
            },
            tenancy: tenancy.0,
        })
    }
}

impl FromRow<'_, PgRow> for TrailPosition {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            era: row.try_get("era")?,
            commit_order: row.try_get("commit_order")?,
            sequence: row.try_get("sequence")?,
        })
    }
}

impl FromRow<'_, PgRow> for TrailEntry {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            position: TrailPosition::from_row(row)?,
            entry: AuditEntry::from_row(row)?,
        })
    }
}

impl FromRow<'_, PgRow> for SettledTrail {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            era: row.try_get("current_era")?,
            transaction: row.try_get("open_transaction")?,
            last: position_of(row, "last")?,
        })
    }
}

/// A position in columns whose names begin with `prefix`; `None` if they are null.
pub(super) fn position_of(row: &PgRow, prefix: &str) -> Result<Option<TrailPosition>, sqlx::Error> {
    let number = |name: &str| row.try_get::<Option<i64>, _>(&*format!("{prefix}_{name}"));
    let numbers = (number("era")?, number("commit_order")?, number("sequence")?);
    let (Some(era), Some(commit_order), Some(sequence)) = numbers else {
        return Ok(None);
    };
    Ok(Some(TrailPosition {
        era,
        commit_order,
        sequence,
    }))
}

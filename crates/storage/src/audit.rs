//! Table `audit_entries`: the trail of changes.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use uuid::Uuid;

use hyperfleet_domain::audit::{AuditEntry, StableTrail, TrailPosition};

/// The columns of an [`AuditEntry`].
pub(super) const ENTRY_COLUMNS: &str = "sequence, at, actor, request_id, action, kind, resource_id, name, \
    generation_before, generation_after, reason, tenancy, era, commit_order";

pub(super) fn entry_of(row: &PgRow) -> Result<AuditEntry, sqlx::Error> {
    let id: Uuid = row.try_get("resource_id")?;
    let tenancy: Json<_> = row.try_get("tenancy")?;
    Ok(AuditEntry {
        action: row.try_get("action")?,
        actor: row.try_get("actor")?,
        generation_after: row.try_get("generation_after")?,
        generation_before: row.try_get("generation_before")?,
        kind: row.try_get("kind")?,
        name: row.try_get("name")?,
        position: position(row, "")?,
        reason: row.try_get("reason")?,
        request_id: row.try_get("request_id")?,
        resource_id: id.to_string(),
        sequence: row.try_get("sequence")?,
        tenancy: tenancy.0,
        at: row.try_get("at")?,
    })
}

/// How far the trail is stable, by the columns of `audit_statement`.
pub(super) fn stable(row: &PgRow) -> Result<StableTrail, sqlx::Error> {
    Ok(StableTrail {
        era: row.try_get("current_era")?,
        transaction: row.try_get("open_transaction")?,
        last: position_of(row, "last_")?,
    })
}

/// A position in columns whose names begin with `prefix`; `None` if they are null.
pub(super) fn position_of(row: &PgRow, prefix: &str) -> Result<Option<TrailPosition>, sqlx::Error> {
    let number = |name: &str| row.try_get::<Option<i64>, _>(&*format!("{prefix}{name}"));
    let numbers = (number("era")?, number("commit_order")?, number("sequence")?);
    let (Some(era), Some(commit_order), Some(sequence)) = numbers else {
        return Ok(None);
    };
    Ok(Some(TrailPosition::new(era, commit_order, sequence)))
}

/// The same of a row that must have one.
pub(super) fn position(row: &PgRow, prefix: &str) -> Result<TrailPosition, sqlx::Error> {
    let position = position_of(row, prefix)?;
    position.ok_or_else(|| sqlx::Error::decode("a row of the audit trail without a position"))
}

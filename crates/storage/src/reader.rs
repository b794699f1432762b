//! Reads single resources as answers show them: their JSON stays text.

use std::sync::LazyLock;

use sqlx::{AssertSqlSafe, Row as _};

use super::batching::{BatchItem, by_place};
use super::error::Context as _;
use super::measure::SqlOperation::{self, Query};
use super::measure::SqlTable::Resources;
use super::row::{COLUMNS, COLUMNS_COUNT, StoredRow};
use super::scope::{WantedColumns, WantedResource};
use super::{Db, Error};
use hyperfleet_domain::StoredResource;

/// Consists of constants only.
static SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, wanted.place
         FROM (
             SELECT id, ($2::text[])[place] AS kind, ($3::uuid[])[place] AS owner_id, ($4::jsonb[])[place] AS tenancy, place
             FROM unnest($1::uuid[]) WITH ORDINALITY ids (id, place)
         ) wanted
         JOIN resources r ON r.id = wanted.id
         WHERE (wanted.kind IS NULL OR r.kind = wanted.kind)
           AND (wanted.owner_id IS NULL OR r.owner_id = wanted.owner_id)
           AND (wanted.tenancy IS NULL OR r.tenancy = wanted.tenancy
                AND (wanted.owner_id IS NULL OR has_tenancy(wanted.owner_id, wanted.tenancy)))"
    )
});

/// Which resource to read.
pub(super) struct FindStored(pub(super) WantedResource);

impl BatchItem for FindStored {
    type Answer = Option<StoredResource>;

    const OPERATION: SqlOperation = Query(Resources);
    const DOING: &'static str = "find a resource";
    const IS_REPEATABLE: bool = true;

    async fn answer(db: &mut Db<'_>, items: &[Self]) -> Result<Vec<Self::Answer>, Error> {
        let wanted = WantedColumns::of(items.iter().map(|item| &item.0));
        let query = sqlx::query(AssertSqlSafe(SQL.as_str()))
            .bind(wanted.ids)
            .bind(wanted.kinds)
            .bind(wanted.owners)
            .bind(wanted.tenancies);
        let result = query.fetch_all(db.repeatable_connection()).await;
        let rows = db.complete(result, Self::OPERATION, Self::DOING)?;
        let found = rows.iter().map(|row| {
            let place = row.try_get(COLUMNS_COUNT)?;
            Ok((place, StoredRow::read(row)?.into()))
        });
        let found: Result<Vec<_>, _> = found.collect();
        let found = found.context("read a resource")?;
        Ok(by_place(items.len(), found))
    }
}

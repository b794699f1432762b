//! Counts resources that are not reconciled, from one small index.

use chrono::{DateTime, Utc};

use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Resources;
use super::{Db, Error};

/// Number of resources of one kind that are not reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreconciled {
    pub kind: String,
    /// Whether these are finalizing, or active.
    pub is_deleting: bool,
    pub count: i64,
    /// Those that have not been reconciled for too long.
    pub stuck: i64,
    /// Those that have been finalizing for long.
    pub long_finalizing: i64,
    /// When the first of all stopped being reconciled.
    pub since: Option<DateTime<Utc>>,
}

impl Db<'_> {
    /// Counts, of these kinds, resources that are not reconciled, those of them that have not been since
    /// `stuck_before`, and those that have been finalizing since before `finalizing_before`. Ends after five seconds;
    /// must run in a transaction, which that limit ends with.
    pub async fn count_unreconciled(
        &mut self,
        kinds: &[String],
        stuck_before: DateTime<Utc>,
        finalizing_before: DateTime<Utc>,
    ) -> Result<Vec<Unreconciled>, Error> {
        let limit = "SET LOCAL statement_timeout = '5s'";
        self.execute(limit, Raw, "limit the time of a statement")
            .await?;
        let result = sqlx::query_as!(
            Unreconciled,
            r#"SELECT kind, deleted_at IS NOT NULL AS "is_deleting!", count(*) AS "count!",
                      count(*) FILTER (WHERE reconciled_transition_at < $2) AS "stuck!",
                      count(*) FILTER (WHERE deleted_at < $3) AS "long_finalizing!",
                      min(reconciled_transition_at) AS since
               FROM resources
               WHERE condition_states @> ARRAY['Reconciled=False'] AND kind = ANY($1)
               GROUP BY 1, 2 ORDER BY 1, 2"#,
            kinds,
            stuck_before,
            finalizing_before,
        )
        .fetch_all(self.connection())
        .await;
        self.complete(result, Query(Resources), "count unreconciled resources")
    }
}

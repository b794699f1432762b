//! Table `idempotency_keys`: completed requests with their responses.

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use super::error::is_lock_timeout;
use super::measure::SqlOperation::{Create, Delete, Query, Update};
use super::measure::SqlTable::IdempotencyKeys;
use super::{Db, Error};
use hyperfleet_domain::idempotency::{Fingerprint, KeyedRequest, StoredAnswer, StoredRequest};

/// What became of a claim to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimedKey {
    /// The key is this transaction's until it ends.
    Fresh,
    /// A request with this key was completed before.
    Stored(StoredRequest),
    /// Another transaction has the key, and did not end in time.
    InProgress,
}

struct Row {
    fingerprint: Vec<u8>,
    status: Option<i16>,
    tag: Option<String>,
    body: Option<Vec<u8>>,
}

impl Db<'_> {
    /// Claims the key of a request, before the transaction changes anything. Waits while another transaction has it.
    /// A key that was claimed before `expired` is free again.
    pub async fn claim_key(
        &mut self,
        request: &KeyedRequest,
        expired: DateTime<Utc>,
    ) -> Result<ClaimedKey, Error> {
        let result = sqlx::query!(
            "INSERT INTO idempotency_keys AS k (tenancy, caller, key, created_at, fingerprint) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenancy, caller, key) DO UPDATE
             SET created_at = excluded.created_at, fingerprint = excluded.fingerprint,
                 status = NULL, tag = NULL, body = NULL
             WHERE k.created_at < $6",
            Json(&request.tenancy) as _,
            request.caller,
            request.key.as_str(),
            request.at,
            &request.fingerprint.0[..],
            expired,
        )
        .execute(self.connection())
        .await;
        let is_held = result.as_ref().is_err_and(is_lock_timeout);
        let claimed = self.complete(result, Create(IdempotencyKeys), "claim an idempotency key");
        if is_held {
            return Ok(ClaimedKey::InProgress);
        }
        if claimed?.rows_affected() == 1 {
            return Ok(ClaimedKey::Fresh);
        }
        // A statement of its own: it sees what the transaction has committed that the claim waited for.
        self.find_stored(request).await.map(ClaimedKey::Stored)
    }

    /// The claim has locked the row.
    async fn find_stored(&mut self, request: &KeyedRequest) -> Result<StoredRequest, Error> {
        let result = sqlx::query_as!(
            Row,
            "SELECT fingerprint, status, tag, body FROM idempotency_keys
             WHERE tenancy = $1 AND caller = $2 AND key = $3",
            Json(&request.tenancy) as _,
            request.caller,
            request.key.as_str(),
        )
        .fetch_one(self.connection())
        .await;
        let row = self.complete(result, Query(IdempotencyKeys), "find a stored response")?;
        row.into_stored().ok_or_else(|| Error::Corrupt {
            column: "idempotency_keys",
            value: "a request without its answer".to_owned(),
        })
    }

    /// Keeps the answer to a request whose key this transaction has claimed.
    pub async fn store_answer(
        &mut self,
        request: &KeyedRequest,
        answer: &StoredAnswer,
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "UPDATE idempotency_keys SET status = $4, tag = $5, body = $6
             WHERE tenancy = $1 AND caller = $2 AND key = $3",
            Json(&request.tenancy) as _,
            request.caller,
            request.key.as_str(),
            i16::try_from(answer.status).unwrap_or(i16::MAX),
            answer.tag,
            answer.body,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Update(IdempotencyKeys), "keep an answer")?;
        Ok(())
    }

    /// Removes keys that were claimed before `expired`, at most `count_max` of them; gives how many. Those that a
    /// transaction has locked stay for the next time.
    pub async fn delete_keys_before(
        &mut self,
        expired: DateTime<Utc>,
        count_max: i64,
    ) -> Result<u64, Error> {
        let result = sqlx::query!(
            "DELETE FROM idempotency_keys WHERE (tenancy, caller, key) IN (
                 SELECT tenancy, caller, key FROM idempotency_keys WHERE created_at < $1
                 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            expired,
            count_max,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(
            result,
            Delete(IdempotencyKeys),
            "remove expired idempotency keys",
        )?;
        Ok(done.rows_affected())
    }
}

impl Row {
    /// `None` for a claim without a response, which is never committed.
    fn into_stored(self) -> Option<StoredRequest> {
        Some(StoredRequest {
            fingerprint: Fingerprint(self.fingerprint.try_into().ok()?),
            answer: StoredAnswer {
                status: u16::try_from(self.status?).ok()?,
                tag: self.tag,
                body: self.body,
            },
        })
    }
}

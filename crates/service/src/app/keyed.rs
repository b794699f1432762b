//! Idempotency keys: claimed in the transaction of their change, and removed when they are old
//! (`docs/decisions/0073-idempotency-keys.md`).

use chrono::{DateTime, Utc};

use super::expiry::{STEP_ROWS, Steps};
use super::{Error, Service};
use hyperfleet_domain::idempotency::{KeyedRequest, StoredAnswer};
use hyperfleet_storage::{ClaimedKey, Tx};

impl Service {
    /// Claims the key of a request, in the transaction of its change. Returns the response if the request was completed
    /// before.
    pub(super) async fn claim(
        &self,
        tx: &mut Tx,
        request: &KeyedRequest,
    ) -> Result<Option<StoredAnswer>, Error> {
        let expired = self.keys_expired_at(request.at);
        match tx.db().claim_key(request, expired).await? {
            ClaimedKey::Fresh => Ok(None),
            ClaimedKey::Stored(stored) => {
                stored.answer_to(request).ok_or(Error::KeyReused).map(Some)
            }
            ClaimedKey::InProgress => Err(Error::KeyInUse),
        }
    }

    /// Keys that were claimed before this moment are free again.
    fn keys_expired_at(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let retention = chrono::TimeDelta::from_std(self.key_retention);
        let expired = retention.ok().and_then(|time| now.checked_sub_signed(time));
        expired.unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// Removes all expired keys; returns their number.
    pub async fn expire_keys(&self, now: DateTime<Utc>) -> Result<u64, Error> {
        let expired = self.keys_expired_at(now);
        let mut steps = Steps::begin();
        loop {
            let mut session = self.store.session().await?;
            let count = session.db().delete_keys_before(expired, STEP_ROWS).await?;
            drop(session);
            if !steps.rest_after(count).await {
                return Ok(steps.removed());
            }
        }
    }
}

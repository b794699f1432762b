//! Requests with an idempotency key: one effect and one answer, however often they are sent.
//!
//! ```text
//! BEGIN ─▶ claim the key ─┬─▶ change ─▶ keep the answer with the key ─▶ COMMIT
//!                         └─▶ carried out before: give its answer
//! ```
//!
//! The key, the change and the answer are one transaction. A refused request is rolled back with its key, so that
//! a repetition is judged again (`docs/decisions/0073-idempotency-keys.md`).

use std::borrow::Borrow;

use chrono::{DateTime, Utc};

use super::deletion::with_effects;
use super::effects::{self, Effects};
use super::expiry::{STEP_ROWS, Steps};
use super::resources::PatchedResource;
use super::{Deleted, Error, ResourcePath, Service};
use crate::domain::audit::ChangeOrigin;
use crate::domain::idempotency::{KeptAnswer, KeyedRequest};
use crate::domain::patch::RequestedPatch;
use crate::domain::precondition::Preconditions;
use crate::domain::tenancy::Tenant;
use crate::domain::{Entity, RequestedResource, Resource};
use crate::storage::postgres::{ClaimedKey, Turn, Tx};

/// The answer to a request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedAnswer {
    pub answer: KeptAnswer,
    /// Whether it is that of an earlier request.
    pub is_replayed: bool,
}

/// Writes the answer to a change, before the change is committed.
pub type WriteAnswer<'a, T> = &'a dyn Fn(&T) -> Result<KeptAnswer, serde_json::Error>;

/// What became of the key of a request.
pub(super) enum Claim {
    /// The transaction in which the request is to be carried out.
    Fresh(Tx),
    Kept(KeyedAnswer),
}

impl Service {
    /// [`Service::create`] for a request with a key.
    pub async fn create_keyed(
        &self,
        entity: &Entity,
        parent: Option<(&Entity, &str)>,
        new: RequestedResource,
        author: (&Tenant, &ChangeOrigin),
        (request, write): (&KeyedRequest, WriteAnswer<'_, Resource>),
    ) -> Result<KeyedAnswer, Error> {
        let creation = self.prepare(entity, parent, new, author).await?;
        self.change_keyed((request, write), async |tx| {
            let created = self.create_in(tx, &creation).await;
            let effects = created.and_then(|created| creation.effects(created));
            effects.map(|effects| (&creation.resource, effects))
        })
        .await
    }

    /// [`Service::patch`] for a request with a key.
    pub async fn patch_keyed(
        &self,
        path: ResourcePath<'_>,
        change: &RequestedPatch,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
        (request, write): (&KeyedRequest, WriteAnswer<'_, Resource>),
    ) -> Result<KeyedAnswer, Error> {
        let Some(scope) = path.scope() else {
            return Err(self.missing(path).await);
        };
        self.change_keyed((request, write), async |tx| {
            let patched = self
                .patch_locked(tx, path, scope, (change, conditions), origin)
                .await;
            patched.map(PatchedResource::with_effects)
        })
        .await
    }

    /// [`Service::delete`] for a request with a key.
    pub async fn delete_keyed(
        &self,
        path: ResourcePath<'_>,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
        (request, write): (&KeyedRequest, WriteAnswer<'_, Deleted>),
    ) -> Result<KeyedAnswer, Error> {
        self.change_keyed((request, write), async |tx| {
            let deleted = self.delete_in(tx, path, None, conditions, origin).await;
            deleted.map(with_effects)
        })
        .await
    }

    /// [`Service::force_delete`] for a request with a key.
    pub async fn force_delete_keyed(
        &self,
        path: ResourcePath<'_>,
        reason: &str,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
        (request, answer): (&KeyedRequest, KeptAnswer),
    ) -> Result<KeyedAnswer, Error> {
        self.in_turns(async |turn| {
            let mut tx = match self.claim(request, turn).await? {
                Claim::Fresh(tx) => tx,
                Claim::Kept(answer) => return Ok(answer),
            };
            let mut decided = self
                .force_delete_in(&mut tx, path, reason, conditions, origin)
                .await;
            if decided.is_ok()
                && let Err(error) = tx.db().keep_answer(request, &answer).await
            {
                decided = Err(error.into());
            }
            self.finish_forced(tx, decided, reason, origin).await?;
            Ok(KeyedAnswer {
                answer: answer.clone(),
                is_replayed: false,
            })
        })
        .await
    }

    /// Makes a change in the transaction that claims the key of its request, and keeps the answer.
    async fn change_keyed<T, C: Borrow<T>>(
        &self,
        (request, write): (&KeyedRequest, WriteAnswer<'_, T>),
        mut change: impl AsyncFnMut(&mut Tx) -> Result<(C, Effects), Error>,
    ) -> Result<KeyedAnswer, Error> {
        self.in_turns(async |turn| {
            let mut tx = match self.claim(request, turn).await? {
                Claim::Fresh(tx) => tx,
                Claim::Kept(answer) => return Ok(answer),
            };
            let changed = change(&mut tx).await;
            finish(tx, request, changed, write).await
        })
        .await
    }

    /// Claims the key of a request, in a transaction for all that follows.
    pub(super) async fn claim(&self, request: &KeyedRequest, turn: Turn) -> Result<Claim, Error> {
        let mut tx = self.store.begin_sets(turn).await?;
        let expired = self.keys_expired_at(request.at);
        let kept = match tx.db().claim_key(request, expired).await {
            Ok(ClaimedKey::Fresh) => return Ok(Claim::Fresh(tx)),
            Ok(ClaimedKey::Kept(kept)) => kept.answer_to(request).ok_or(Error::KeyReused),
            Ok(ClaimedKey::InProgress) => Err(Error::KeyInUse),
            Err(error) => Err(error.into()),
        };
        let answer = tx.finish(kept).await?;
        Ok(Claim::Kept(KeyedAnswer {
            answer,
            is_replayed: true,
        }))
    }

    /// Keys that were claimed before this moment are free again.
    fn keys_expired_at(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let kept = chrono::TimeDelta::from_std(self.keys_kept);
        let expired = kept.ok().and_then(|kept| now.checked_sub_signed(kept));
        expired.unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// Removes all expired keys; returns their number.
    pub async fn expire_keys(&self, now: DateTime<Utc>) -> Result<u64, Error> {
        let expired = self.keys_expired_at(now);
        let (mut removed, mut steps) = (0, Steps::begin());
        loop {
            let mut session = self.store.session().await?;
            let count = session.db().delete_keys_before(expired, STEP_ROWS).await?;
            drop(session);
            if count == 0 {
                return Ok(removed);
            }
            removed += count;
            steps.rest().await;
        }
    }
}

/// Keeps the answer to a change, and ends its transaction.
async fn finish<T>(
    mut tx: Tx,
    request: &KeyedRequest,
    changed: Result<(impl Borrow<T>, Effects), Error>,
    write: WriteAnswer<'_, T>,
) -> Result<KeyedAnswer, Error> {
    let kept = match changed {
        Err(error) => Err(error),
        Ok((changed, effects)) => match write(changed.borrow()) {
            Err(error) => Err(Error::Answer(error)),
            Ok(answer) => {
                let kept = tx.db().keep_answer(request, &answer).await;
                kept.map_err(Error::from).map(|()| (answer, effects))
            }
        },
    };
    let answer = effects::commit(tx, kept).await?;
    Ok(KeyedAnswer {
        answer,
        is_replayed: false,
    })
}

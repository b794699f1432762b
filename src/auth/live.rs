//! An issuer at work: its keys as they are now, and the tokens that they are asked about.
//!
//! Requests only ever read the keys of the moment; one whose key is not known asks the task that
//! fetches (`upkeep`) to be quick, and waits a little.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use tokio::time::timeout;

use super::TokenFault;
use super::claims::{self, Validity};
use super::config::Issuer;
use super::fetch::Published;
use super::gate::FetchGate;
use super::gauges::{EntryGauges, Origin};
use super::keys::{KeySet, Verified, digest};
use super::pace::Pace;
use super::token::{TOKEN_BYTES_MAX, Token};
use hyperfleet_server_kit::clock::Clock;

/// An issuer with its keys.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) issuer: Issuer,
    /// Whether another entry of the settings names the issuer, too.
    is_named_again: bool,
    gauges: EntryGauges,
    pub(super) pace: Pace,
    clock: Clock,
    /// Swapped whole; nobody holds the lock for longer than a copy of the pointer.
    keys: RwLock<Arc<KeySet>>,
    /// The last good keys of each source.
    parts: Mutex<BTreeMap<Origin, Published>>,
    pub(super) gate: FetchGate,
}

impl Live {
    pub(super) fn new(
        issuer: Issuer,
        is_named_again: bool,
        gauges: EntryGauges,
        pace: Pace,
        clock: Clock,
    ) -> Self {
        let live = Self {
            is_named_again,
            gauges,
            pace,
            clock,
            keys: RwLock::default(),
            parts: Mutex::default(),
            gate: FetchGate::new(pace.cooldown),
            issuer,
        };
        // An issuer without keys is to be seen, too.
        live.gauges.show_keys(live.keys().len());
        if let Some(file) = &live.issuer.file {
            live.replace_keys(Origin::File, file.published.clone());
        }
        live
    }

    /// Checks a token. May wait for a fetch, but not for long.
    pub(super) async fn verify(&self, text: &str) -> Result<Arc<Verified>, TokenFault> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong);
        }
        let now = self.clock.now();
        let digest = digest(text);
        let mut keys = self.keys();
        if let Some(verified) = keys.remembered(&digest) {
            verified.validity.check(now)?;
            return Ok(verified);
        }
        let token = Token::parse(text)?;
        // First, so that the tokens of one issuer do not make another one's keys be fetched.
        if !claims::is_of(&token.claims, &self.issuer.url) {
            return Err(TokenFault::Issuer);
        }
        // Another entry may be for it, or none: no key is fetched or tried for that here.
        if self.is_named_again && !self.is_for(&token) {
            return Err(TokenFault::Audience);
        }
        let mut outcome = keys.verify(&token);
        if outcome == Err(TokenFault::UnknownKey) {
            self.refresh().await;
            keys = self.keys();
            outcome = keys.verify(&token);
        }
        outcome?;
        let validity = Validity::of(&token.claims)?;
        validity.check(now)?;
        if !self.is_for(&token) {
            return Err(TokenFault::Audience);
        }
        let verified = Arc::new(Verified {
            validity,
            identity: self.issuer.identity.of_claims(&token.claims),
        });
        keys.remember(digest, verified.clone());
        Ok(verified)
    }

    /// Whether a token is for the audience that is set, if one is.
    fn is_for(&self, token: &Token<'_>) -> bool {
        let audience = self.issuer.audience.as_ref();
        audience.is_none_or(|audience| claims::is_for(&token.claims, audience))
    }

    /// The keys of the moment.
    pub(super) fn keys(&self) -> Arc<KeySet> {
        let keys = self.keys.read();
        keys.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the keys fetched unless that was done just now, and waits for it for a while.
    async fn refresh(&self) {
        if self.issuer.address.is_some()
            && let Some(ended) = self.gate.request()
        {
            // Whether it came in time is seen by the keys.
            let _ = timeout(self.pace.wait, self.gate.ended(ended)).await;
        }
    }

    /// Whether this is what the file held when its keys were last taken.
    pub(super) fn is_in_file(&self, text: &[u8]) -> bool {
        let parts = self.parts();
        parts
            .get(&Origin::File)
            .is_some_and(|file| file.text == text)
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<Origin, Published>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of a source were looked at just now, and are as they should be.
    pub(super) fn record_success(&self, origin: Origin) {
        self.gauges.show_success(origin, seconds(self.clock.now()));
    }

    /// Takes the good keys of a source in place of those it had.
    pub(super) fn replace_keys(&self, origin: Origin, published: Published) {
        let mut parts = self.parts();
        self.record_success(origin);
        let part = parts.entry(origin).or_default();
        if part.text == published.text {
            return;
        }
        *part = published;
        let all = parts.values().flat_map(|part| part.keys.iter().cloned());
        let keys = KeySet::new(all.collect());
        self.gauges.show_keys(keys.len());
        tracing::info!(
            issuer = self.issuer.url,
            keys = keys.len(),
            from = ?origin,
            "the issuer has new keys"
        );
        for why in &parts[&origin].skipped {
            tracing::warn!(issuer = self.issuer.url, "left out: {why}");
        }
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of this century fit"
)]
fn seconds(at: DateTime<Utc>) -> f64 {
    at.timestamp_micros() as f64 / 1e6
}

//! An issuer in use: its current keys, and the verification of tokens.
//!
//! Requests only read the current keys. A request with an unknown key starts a fetch (`upkeep`), unless one has ended a
//! short time ago, and waits for it for a short time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use tokio::time::{Instant, timeout};

use super::TokenError;
use super::claims::{self, Validity};
use super::config::Issuer;
use super::fetch::Published;
use super::gauges::{EntryGauges, Origin};
use super::keys::{KeySet, Verified, digest};
use super::pace::Pace;
use super::token::{TOKEN_BYTES_MAX, Token};
use hyperfleet_server_kit::clock::Clock;

#[derive(Debug)]
pub(super) struct Live {
    pub(super) issuer: Issuer,
    /// Whether another entry of the settings has the same issuer.
    is_named_again: bool,
    gauges: EntryGauges,
    pub(super) pace: Pace,
    clock: Clock,
    /// Replaced, never changed; the lock is held only while the pointer is copied.
    keys: RwLock<Arc<KeySet>>,
    /// The last good keys of each source.
    parts: Mutex<BTreeMap<Origin, Published>>,
    /// Locked during a fetch, so that there is only one at a time.
    pub(super) fetches: Arc<tokio::sync::Mutex<Fetches>>,
}

/// The fetches of an issuer's keys so far.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    /// The end of the last one.
    pub(super) ended: Option<Instant>,
    /// Failures since the last success.
    pub(super) failures: u32,
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
            fetches: Arc::default(),
            issuer,
        };
        // Metrics include issuers without keys.
        live.gauges.show_keys(live.keys().len());
        if let Some(file) = &live.issuer.file {
            live.replace_keys(Origin::File, file.published.clone());
        }
        live
    }

    /// Checks a token. May wait for a fetch, for a short time.
    pub(super) async fn verify(self: &Arc<Self>, text: &str) -> Result<Arc<Verified>, TokenError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let now = self.clock.now();
        let digest = digest(text);
        let mut keys = self.keys();
        if let Some(verified) = keys.remembered(&digest) {
            verified.validity.check(now)?;
            return Ok(verified);
        }
        let token = Token::parse(text)?;
        // First, so that tokens of one issuer cause no fetch of another issuer's keys.
        if !claims::is_of(&token.claims, &self.issuer.url) {
            return Err(TokenError::Issuer);
        }
        // Another entry may be for this audience, or none. Either way this entry fetches and tries no key for the
        // token.
        if self.is_named_again && !self.is_for(&token) {
            return Err(TokenError::Audience);
        }
        let mut outcome = keys.verify(&token);
        if outcome == Err(TokenError::UnknownKey) {
            self.refresh().await;
            keys = self.keys();
            outcome = keys.verify(&token);
        }
        outcome?;
        let validity = Validity::of(&token.claims)?;
        validity.check(now)?;
        if !self.is_for(&token) {
            return Err(TokenError::Audience);
        }
        let verified = Arc::new(Verified {
            validity,
            identity: self.issuer.identity.of_claims(&token.claims),
        });
        keys.remember(digest, verified.clone());
        Ok(verified)
    }

    /// Whether a token is for the configured audience, if there is one.
    fn is_for(&self, token: &Token<'_>) -> bool {
        let audience = self.issuer.audience.as_ref();
        audience.is_none_or(|audience| claims::is_for(&token.claims, audience))
    }

    pub(super) fn keys(&self) -> Arc<KeySet> {
        let keys = self.keys.read();
        keys.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the keys unless a fetch has just ended, and waits for it for a short time.
    async fn refresh(self: &Arc<Self>) {
        if self.issuer.address.is_some() {
            let fetched = self.fetch_unless_within(self.pace.cooldown);
            // The caller reads the keys again either way.
            let _ = timeout(self.pace.wait, fetched).await;
        }
    }

    /// Whether this is the file's content from which its keys were last taken.
    pub(super) fn is_in_file(&self, text: &[u8]) -> bool {
        let parts = self.parts();
        parts
            .get(&Origin::File)
            .is_some_and(|file| file.text == text)
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<Origin, Published>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A source was read successfully just now.
    pub(super) fn record_success(&self, origin: Origin) {
        self.gauges.show_success(origin, seconds(self.clock.now()));
    }

    /// Replaces the keys of a source.
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
            "issuer keys replaced"
        );
        for why in &parts[&origin].skipped {
            tracing::warn!(issuer = self.issuer.url, key = %why, "key of an issuer ignored");
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

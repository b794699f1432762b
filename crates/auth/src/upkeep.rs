//! Keeps an issuer's keys up to date: one task fetches them, as do requests with an unknown key; another reads the file.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use ring::rand::SystemRandom;
use strum::VariantNames as _;
use tokio::time::Instant;

use super::fetch::{self, FetchError};
use super::gauges::Origin;
use super::live::Live;
use hyperfleet_server_kit::telemetry::TraceContext;

const REFRESHES: &str = "hyperfleet_api_jwks_refreshes_total";

impl Live {
    /// Fetches the keys now, then periodically. Never ends.
    pub(super) async fn fetch_forever(self: Arc<Self>) {
        // A request may have fetched them already.
        self.fetch_unless_within(Duration::MAX).await;
        loop {
            let failures = self.fetches.lock().await.failures;
            tokio::time::sleep(self.pause(failures)).await;
            self.fetch_unless_within(Duration::ZERO).await;
        }
    }

    /// Fetches the keys, unless a fetch has ended within this time. If a fetch is in progress, waits for its end first.
    /// A fetch continues if its caller stops waiting.
    pub(super) async fn fetch_unless_within(self: &Arc<Self>, time: Duration) {
        let mut fetches = Arc::clone(&self.fetches).lock_owned().await;
        if fetches.ended.is_some_and(|at| at.elapsed() < time) {
            return;
        }
        let (live, asked_by) = (Arc::clone(self), TraceContext::current());
        let fetch = tokio::spawn(async move {
            let is_success = live.fetch(&asked_by).await;
            fetches.failures = if is_success { 0 } else { fetches.failures + 1 };
            fetches.ended = Some(Instant::now());
        });
        let _ = fetch.await;
    }

    /// Fetches the keys. Returns whether that succeeded.
    async fn fetch(&self, asked_by: &TraceContext) -> bool {
        let Some(address) = &self.issuer.address else {
            return false;
        };
        match fetch::fetch(address, asked_by).await {
            Ok(published) => {
                self.count(Origin::Address, fetch::SUCCESS);
                self.replace_keys(Origin::Address, published);
                true
            }
            Err(error) => {
                tracing::warn!(
                    issuer = self.issuer.url,
                    keys = self.keys().len(),
                    error = %error,
                    "issuer keys not fetched: keeping the earlier ones"
                );
                self.count(Origin::Address, error.into());
                false
            }
        }
    }

    /// The time until the next fetch.
    fn pause(&self, failures: u32) -> Duration {
        if failures == 0 {
            return self.pace.period.mul_f64(0.9 + 0.2 * random());
        }
        let doubled = self.pace.retry_min * 2_u32.pow((failures - 1).min(10));
        doubled.min(self.pace.retry_max)
    }

    /// Reads the file periodically. Compares its content, not its time: links are swapped, and clocks are coarse.
    pub(super) async fn watch_file(self: Arc<Self>) {
        let Some(file) = &self.issuer.file else {
            return;
        };
        let mut complaint = String::new();
        loop {
            tokio::time::sleep(self.pace.file_period).await;
            let path = file.path.clone();
            let Ok(read) = tokio::task::spawn_blocking(move || fetch::read(&path)).await else {
                continue;
            };
            if read.as_ref().is_ok_and(|text| self.is_in_file(text)) {
                self.record_success(Origin::File);
                complaint.clear();
                continue;
            }
            match read.and_then(fetch::parse) {
                Ok(published) => {
                    self.count(Origin::File, fetch::SUCCESS);
                    self.replace_keys(Origin::File, published);
                    complaint.clear();
                }
                // Logs each error once, not with each read.
                Err(error) if complaint != error.to_string() => {
                    complaint = error.to_string();
                    let path = file.path.display();
                    tracing::warn!(
                        issuer = self.issuer.url,
                        %path,
                        error = %error,
                        "issuer keys not read: keeping the earlier ones"
                    );
                    self.count(Origin::File, error.into());
                }
                Err(_) => {}
            }
        }
    }

    fn count(&self, origin: Origin, outcome: &'static str) {
        self.refreshes(origin, outcome).increment(1);
    }

    /// Creates the series of every outcome of a source with the value 0: a first failure would not show as growth.
    pub(super) fn count_from_zero(&self, origin: Origin) {
        for outcome in iter::once(&fetch::SUCCESS).chain(FetchError::VARIANTS) {
            self.refreshes(origin, outcome).absolute(0);
        }
    }

    fn refreshes(&self, origin: Origin, outcome: &'static str) -> metrics::Counter {
        let issuer = self.issuer.url.clone();
        let source: &str = origin.into();
        metrics::counter!(REFRESHES, "issuer" => issuer, "source" => source, "outcome" => outcome)
    }
}

/// From 0 to 1; 0.5 if the system has no random bytes.
fn random() -> f64 {
    let bytes = ring::rand::generate::<[u8; 1]>(&SystemRandom::new());
    bytes.map_or(0.5, |bytes| f64::from(bytes.expose()[0]) / 255.0)
}

//! Decides whether a caller may call: tries the token with each configured issuer in turn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::bearer::{HeaderField, NotBearer};
use super::config::Issuer;
use super::gauges::{Origin, gauges_of};
use super::keys::Verified;
use super::live::Live;
use super::pace::Pace;
use super::refusal::reasons;
use super::{AuthRefusal, IdentityError, TokenError, signature};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::supervise::supervise;

/// Counts refused callers by reason.
const FAILURES: &str = "hyperfleet_api_auth_failures_total";

/// Whether callers must authenticate.
#[derive(Debug, Clone)]
pub enum Authentication {
    /// Every caller may call.
    Off,
    On(Authenticator),
}

/// What a request needs to know of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// That the caller is authenticated.
    Proof,
    /// The caller's identity is also required, because the request changes something.
    Identity,
}

/// Knows the issuers and their keys. Clones share them; the tasks that renew the keys end with the last clone.
#[derive(Debug, Clone)]
pub struct Authenticator {
    issuers: Arc<[Arc<Live>]>,
    _tasks: Arc<JoinSet<()>>,
}

impl Authenticator {
    /// Starts to fetch keys and to watch files, in the current runtime. Files have been read already, so their keys
    /// are there at once.
    pub fn start(issuers: Vec<Issuer>, pace: Pace, clock: &Clock) -> Self {
        signature::install();
        let mut tasks = JoinSet::new();
        let names: Vec<_> = issuers.iter().map(|issuer| issuer.url.clone()).collect();
        let issuers = issuers.into_iter().zip(gauges_of(&names));
        let live = |(issuer, gauges): (Issuer, _)| {
            let same = names.iter().filter(|name| **name == issuer.url);
            let is_named_again = same.count() > 1;
            Arc::new(Live::new(
                issuer,
                is_named_again,
                gauges,
                pace,
                clock.clone(),
            ))
        };
        let issuers: Arc<[_]> = issuers.map(live).collect();
        for reason in reasons() {
            // So that the first refusal shows as growth.
            metrics::counter!(FAILURES, "reason" => reason).absolute(0);
        }
        for live in &*issuers {
            if live.issuer.address.is_some() {
                live.count_from_zero(Origin::Address);
                let live = Arc::clone(live);
                let fetch = move || Arc::clone(&live).fetch_forever();
                tasks.spawn(supervise("fetch the keys of an issuer", fetch));
            }
            if live.issuer.file.is_some() {
                live.count_from_zero(Origin::File);
                let live = Arc::clone(live);
                let read = move || Arc::clone(&live).watch_file();
                tasks.spawn(supervise("read the keys of an issuer", read));
            }
        }
        Self {
            issuers,
            _tasks: Arc::new(tasks),
        }
    }

    /// Waits until the keys of every issuer were requested once, for at most `limit`.
    pub async fn fetch_keys_once(&self, limit: Duration) {
        let all = self.issuers.iter();
        let fetching = all.filter(|live| live.issuer.address.is_some());
        let fetched = join_all(fetching.map(|live| live.fetch_unless_within(Duration::MAX)));
        let _ = timeout(limit, fetched).await;
    }

    /// The names of the issuers, in their order, each once.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        let names = self.issuers.iter().map(|live| live.issuer.url.as_str());
        names.filter(move |name| seen.insert(*name))
    }

    /// The headers that tokens and identities are read from.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().flat_map(|live| {
            let identity = live.issuer.identity.header.as_deref();
            [Some(live.issuer.header.as_str()), identity]
                .into_iter()
                .flatten()
        })
    }

    /// Authenticates the caller of a request by its header fields.
    ///
    /// The first issuer that accepts the token decides where the caller's identity is.
    ///
    /// # Errors
    ///
    /// No token of an issuer; an invalid token (an expired one takes precedence); no identity where one is needed.
    pub async fn authenticate<'a>(
        &self,
        field: impl Fn(&str) -> HeaderField<'a>,
        need: Need,
    ) -> Result<Option<String>, AuthRefusal> {
        let outcome = match self.proven(&field).await {
            Ok((live, verified)) => {
                let identity = identity(live, &verified, field, need);
                identity.map_err(|error| (Some(live), AuthRefusal::Unidentified(error)))
            }
            Err(refused) => Err(refused),
        };
        outcome.map_err(|(live, refusal)| {
            let (reason, issuer) = (refusal.reason(), live.map(|live| &live.issuer.url));
            // The log line of the request also has the reason.
            tracing::debug!(issuer, reason, "caller refused");
            metrics::counter!(FAILURES, "reason" => reason).increment(1);
            refusal
        })
    }

    /// The issuer that accepts the token; otherwise the error, and the issuer it belongs to.
    async fn proven<'a>(
        &self,
        field: &impl Fn(&str) -> HeaderField<'a>,
    ) -> Result<(&Live, Arc<Verified>), (Option<&Live>, AuthRefusal)> {
        let mut refused = (None, AuthRefusal::Missing);
        for live in &*self.issuers {
            let refusal = match field(&live.issuer.header).token() {
                None => continue,
                Some(Err(NotBearer)) => AuthRefusal::NotBearer,
                Some(Ok(token)) => match live.verify(token).await {
                    Ok(verified) => return Ok((live, verified)),
                    Err(error) => AuthRefusal::Invalid(error),
                },
            };
            if weight(&refusal) > weight(&refused.1) {
                refused = (Some(&**live), refusal);
            }
        }
        Err(refused)
    }
}

/// Ranks refusals: the one that says most about the token is reported. An entry for the token's audience says more
/// than others of the issuer.
fn weight(refusal: &AuthRefusal) -> u8 {
    match refusal {
        AuthRefusal::Missing => 0,
        AuthRefusal::NotBearer => 1,
        AuthRefusal::Invalid(TokenError::Issuer) => 2,
        AuthRefusal::Invalid(TokenError::Audience) => 3,
        AuthRefusal::Invalid(TokenError::Expired) | AuthRefusal::Unidentified(_) => 5,
        AuthRefusal::Invalid(_) => 4,
    }
}

/// The caller's identity, if it is known or needed.
fn identity<'a>(
    live: &Live,
    verified: &Verified,
    field: impl Fn(&str) -> HeaderField<'a>,
    need: Need,
) -> Result<Option<String>, IdentityError> {
    let header = live.issuer.identity.of_header(field);
    match header.unwrap_or_else(|| verified.identity.clone()) {
        Ok(identity) => Ok(Some(identity)),
        Err(_) if need == Need::Proof => Ok(None),
        Err(error) => Err(error),
    }
}

//! Who may call: tokens of any issuer that is set, in their order.

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
use super::{AuthRefusal, IdentityFault, TokenFault, signature};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::supervise::{PAUSE, supervise};

/// Callers that were refused, by reason.
const FAILURES: &str = "hyperfleet_api_auth_failures_total";

/// Whether callers have to prove who they are.
#[derive(Debug, Clone)]
pub enum Authentication {
    /// Anybody may call, and nobody is asked.
    Off,
    /// With a token.
    On(Authenticator),
}

/// What has to be known of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// That they may call.
    Proof,
    /// Who they are, too: they change something.
    Identity,
}

/// Knows the issuers and their keys. Clones are the same one; what keeps its keys ends with the
/// last.
#[derive(Debug, Clone)]
pub struct Authenticator {
    issuers: Arc<[Arc<Live>]>,
    _tasks: Arc<JoinSet<()>>,
}

impl Authenticator {
    /// Starts to fetch keys and to watch files, in the current runtime. Files have been read, so
    /// that their keys are there at once.
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
            // So that the first refusal is seen as growth.
            metrics::counter!(FAILURES, "reason" => reason).absolute(0);
        }
        for live in &*issuers {
            if live.issuer.address.is_some() {
                live.count_from_zero(Origin::Address);
                let live = Arc::clone(live);
                let fetch = move || Arc::clone(&live).fetch_forever();
                tasks.spawn(supervise("fetch the keys of an issuer", PAUSE, fetch));
            }
            if live.issuer.file.is_some() {
                live.count_from_zero(Origin::File);
                let live = Arc::clone(live);
                let read = move || Arc::clone(&live).watch_file();
                tasks.spawn(supervise("read the keys of an issuer", PAUSE, read));
            }
        }
        Self {
            issuers,
            _tasks: Arc::new(tasks),
        }
    }

    /// Waits until every issuer was asked for its keys once, but not for longer than this.
    pub async fn settle(&self, limit: Duration) {
        let all = self.issuers.iter();
        let fetching = all.filter(|live| live.issuer.address.is_some());
        let fetched = join_all(fetching.map(|live| live.gate.ended(0)));
        let _ = timeout(limit, fetched).await;
    }

    /// The names of the issuers, in their order, each once.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        let names = self.issuers.iter().map(|live| live.issuer.url.as_str());
        names.filter(move |name| seen.insert(*name))
    }

    /// The headers that tokens and identities are looked for in.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().flat_map(|live| {
            let identity = live.issuer.identity.header.as_deref();
            [Some(live.issuer.header.as_str()), identity]
                .into_iter()
                .flatten()
        })
    }

    /// Who is calling, as far as that is known, by the fields of the request's header.
    ///
    /// The first issuer whose token is good decides where the caller's identity is looked for.
    ///
    /// # Errors
    ///
    /// No token of an issuer; a token at fault (that it has expired is told before anything else);
    /// no identity where one is needed.
    pub async fn authenticate<'a>(
        &self,
        field: impl Fn(&str) -> HeaderField<'a>,
        need: Need,
    ) -> Result<Option<String>, AuthRefusal> {
        let outcome = match self.proven(&field).await {
            Ok((live, verified)) => {
                let identity = identity(live, &verified, field, need);
                identity.map_err(|fault| (Some(live), AuthRefusal::Unidentified(fault)))
            }
            Err(refused) => Err(refused),
        };
        outcome.map_err(|(live, refusal)| {
            let (reason, issuer) = (refusal.reason(), live.map(|live| &live.issuer.url));
            // The line of the request has the reason, too.
            tracing::debug!(issuer, reason, "a caller is refused");
            metrics::counter!(FAILURES, "reason" => reason).increment(1);
            refusal
        })
    }

    /// The issuer whose token is good; else what is wrong, and with which issuer's.
    async fn proven<'a>(
        &self,
        field: &impl Fn(&str) -> HeaderField<'a>,
    ) -> Result<(&Live, Arc<Verified>), (Option<&Live>, AuthRefusal)> {
        let mut refused = (None, AuthRefusal::Missing);
        for live in &*self.issuers {
            let live = live.as_ref();
            let refusal = match field(&live.issuer.header).token() {
                None => continue,
                Some(Err(NotBearer)) => AuthRefusal::NotBearer,
                Some(Ok(token)) => match live.verify(token).await {
                    Ok(verified) => return Ok((live, verified)),
                    Err(fault) => AuthRefusal::Invalid(fault),
                },
            };
            if weight(&refusal) > weight(&refused.1) {
                refused = (Some(live), refusal);
            }
        }
        Err(refused)
    }
}

/// Which of several refusals is told: what says most about the token. An entry that is for its audience says more than
/// others of the issuer.
fn weight(refusal: &AuthRefusal) -> u8 {
    match refusal {
        AuthRefusal::Missing => 0,
        AuthRefusal::NotBearer => 1,
        AuthRefusal::Invalid(TokenFault::Issuer) => 2,
        AuthRefusal::Invalid(TokenFault::Audience) => 3,
        AuthRefusal::Invalid(TokenFault::Expired) | AuthRefusal::Unidentified(_) => 5,
        AuthRefusal::Invalid(_) => 4,
    }
}

/// Who is calling, if that is known or has to be.
fn identity<'a>(
    live: &Live,
    verified: &Verified,
    field: impl Fn(&str) -> HeaderField<'a>,
    need: Need,
) -> Result<Option<String>, IdentityFault> {
    let header = live.issuer.identity.of_header(field);
    match header.unwrap_or_else(|| verified.identity.clone()) {
        Ok(identity) => Ok(Some(identity)),
        Err(_) if need == Need::Proof => Ok(None),
        Err(fault) => Err(fault),
    }
}

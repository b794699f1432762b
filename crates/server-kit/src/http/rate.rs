//! Rate limits per caller (GCRA, by `governor`).

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use actix_web::http::header::{HeaderName, HeaderValue};
use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::{Quota, RateLimiter};

/// Locks of the table, so that threads rarely wait for each other.
const SHARDS: usize = 16;
/// Most callers in each part of the table. Beyond that some are forgotten and start afresh.
const CALLERS_MAX: usize = 4096;

/// Requests with the same key are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// An authenticated caller.
    Caller(String),
    /// Any other caller, by address. For IPv6 by network, because one machine has all its addresses.
    Peer(Option<IpAddr>),
}

/// The key of a request.
pub(super) fn key(caller: Option<String>, peer: Option<SocketAddr>) -> Key {
    match (caller, peer.map(|peer| peer.ip().to_canonical())) {
        (Some(caller), _) => Key::Caller(caller),
        (None, Some(IpAddr::V6(address))) => {
            let network = address.to_bits() & (u128::MAX << 64);
            Key::Peer(Some(Ipv6Addr::from_bits(network).into()))
        }
        (None, address) => Key::Peer(address),
    }
}

type Shard = RateLimiter<Key, Callers, MonotonicClock, StateInformationMiddleware>;

/// The limit of every caller.
pub(super) struct RateLimit {
    shards: Vec<Shard>,
    hasher: RandomState,
    per_second: NonZeroU32,
    burst: NonZeroU32,
}

/// A caller's remaining requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateStatus {
    burst: u32,
    window_seconds: u64,
    remaining: u32,
    reset_seconds: u64,
    /// When a refused caller may retry.
    pub(super) retry_seconds: Option<u64>,
}

impl RateLimit {
    /// The limit by the settings: an average rate and a burst, where 0 means as many as per second. `None` if
    /// there is no limit.
    pub(super) fn new(per_second: u32, burst: u32) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let burst = NonZeroU32::new(burst).unwrap_or(per_second);
        let quota = Quota::per_second(per_second).allow_burst(burst);
        let shard = || Shard::new(quota, Callers::default(), MonotonicClock);
        Some(Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
            per_second,
            burst,
        })
    }

    /// Counts a request, unless the caller has none left.
    pub(super) fn count(&self, key: &Key) -> RateStatus {
        let hash = self.hasher.hash_one(key);
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or_default();
        let shard = &self.shards[index];
        let (per_second, burst) = (u64::from(self.per_second.get()), self.burst.get());
        let mut standing = RateStatus {
            burst,
            window_seconds: u64::from(burst).div_ceil(per_second),
            remaining: 0,
            reset_seconds: 0,
            retry_seconds: None,
        };
        match shard.check_key(key) {
            Ok(state) => {
                standing.remaining = state.remaining_burst_capacity();
                let used = burst.saturating_sub(standing.remaining);
                standing.reset_seconds = u64::from(used).div_ceil(per_second);
            }
            Err(refused) => {
                let wait = refused.wait_time_from(shard.clock().now());
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                standing.reset_seconds = seconds.max(1);
                standing.retry_seconds = Some(standing.reset_seconds);
            }
        }
        standing
    }
}

impl RateStatus {
    /// The headers of the current draft (draft-ietf-httpapi-ratelimit-headers), and those of earlier drafts,
    /// which clients know.
    pub(super) fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let Self {
            burst,
            window_seconds,
            remaining,
            reset_seconds,
            ..
        } = self;
        let headers = [
            (
                "ratelimit-policy",
                format!("\"caller\";q={burst};w={window_seconds}"),
            ),
            (
                "ratelimit",
                format!("\"caller\";r={remaining};t={reset_seconds}"),
            ),
            ("ratelimit-limit", burst.to_string()),
            ("ratelimit-remaining", remaining.to_string()),
            ("ratelimit-reset", reset_seconds.to_string()),
        ];
        headers.into_iter().filter_map(|(name, value)| {
            Some((
                HeaderName::from_static(name),
                HeaderValue::try_from(value).ok()?,
            ))
        })
    }
}

/// When each caller has its full burst again, for a limited number of callers.
#[derive(Debug, Default)]
struct Callers(Mutex<HashMap<Key, Nanos>>);

impl StateStore for Callers {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = callers.get_mut(key) {
            let (outcome, next) = decide(Some(*at))?;
            *at = next;
            return Ok(outcome);
        }
        let (outcome, next) = decide(None)?;
        if callers.len() >= CALLERS_MAX {
            // Forgetting a caller that has all but one of its requests does no harm.
            callers.retain(|_, at| *at > next);
            if callers.len() >= CALLERS_MAX {
                let mut index = 0;
                callers.retain(|_, _| {
                    index += 1;
                    index % 4 != 0
                });
            }
        }
        callers.insert(key.clone(), next);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Key {
        key(None, Some(SocketAddr::new(address.parse().unwrap(), 1)))
    }

    #[test]
    fn callers_are_distinguished_by_identity_then_address_then_network() {
        let address = "192.0.2.1:80".parse().ok();
        let caller = |name: &str| key(Some(name.to_owned()), None);
        assert_eq!(key(Some("me".to_owned()), address), caller("me"));
        assert_ne!(caller("me"), caller("you"));
        assert_ne!(caller("192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    }

    #[test]
    fn each_caller_has_its_own_burst_and_learns_what_is_left() {
        let limit = RateLimit::new(1, 3).unwrap();
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let first = limit.count(&one);
        assert_eq!((first.remaining, first.retry_seconds), (2, None));
        let text: Vec<_> = first.headers().map(|(_, text)| text).collect();
        let expected = ["\"caller\";q=3;w=3", "\"caller\";r=2;t=1", "3", "2", "1"];
        assert_eq!(text, expected);
        limit.count(&one);
        limit.count(&one);
        // On a busy machine up to a second's worth may be available again.
        let refused = (0..100).find_map(|_| limit.count(&one).retry_seconds);
        assert_eq!(refused, Some(1));
        assert_eq!(limit.count(&other).remaining, 2);
    }

    #[test]
    fn a_flood_of_callers_does_not_fill_the_memory_nor_lock_anybody_out() {
        let limit = RateLimit::new(1, 5).unwrap();
        for number in 0..200_000_u32 {
            let caller = key(Some(number.to_string()), None);
            assert_eq!(limit.count(&caller).retry_seconds, None);
        }
        let remembered = limit.shards.into_iter().map(|shard| {
            let callers = shard.into_state_store().0;
            callers.into_inner().unwrap().len()
        });
        let most = remembered.max().unwrap();
        assert!((1..=CALLERS_MAX).contains(&most), "{most}");
    }

    #[test]
    fn nothing_per_second_is_no_limit_and_no_burst_is_one_second_of_requests() {
        assert!(RateLimit::new(0, 100).is_none());
        assert_eq!(RateLimit::new(7, 0).unwrap().burst.get(), 7);
    }
}

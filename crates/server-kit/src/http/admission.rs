//! The checks that a request must pass before its handler. Mounted on routes, so that unknown paths are refused
//! without authentication.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body;
use super::gate::{Gate, Phase};
use super::headers::ResponseHeaders;
use super::memory::{Reservation, ResponseBudget};
use super::pieces::PIECE;
use super::problem::{Problem, WatcherRefusal};
use super::rate::{self, RateLimit};
use super::refusals;
use super::telemetry::{RequestLog, RoutePath};

/// Most clients that watch at a time, if each needs little memory. Each keeps a connection for as long as it likes.
const WATCHERS_MAX: usize = 2048;
/// Least memory of a watching client in bytes. Clients that need more count as several.
pub const WATCHER_BYTES_MIN: usize = PIECE / 4;
/// Memory of a watching client in bytes that holds an update of its own: roughly that, and the serialized form.
pub const WATCHER_BYTES: usize = 2 * PIECE;
/// Watching clients may use at most this part of the memory for clients.
const WATCHERS_SHARE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in progress over all threads.
    pub in_flight_max: usize,
    /// Bytes of large bodies and responses that are held for clients at a time.
    pub buffered_bytes_max: usize,
    /// How long a body may take, beside the time that it earns by arriving (`http/body`).
    pub body_time: Duration,
    /// Average requests per second of one caller; 0 for no limit.
    pub rate_per_second: u32,
    /// Requests that one caller may send in a burst; 0 for as many as per second.
    pub rate_burst: u32,
}

/// Decides which requests are let in. Clones share the limits.
#[derive(Clone)]
pub struct Admission(Arc<Parts>);

/// The authenticated caller's name, for rate limits.
pub struct ProvenCaller(pub String);

/// A place among the watching clients, freed on drop.
pub struct WatcherSlot {
    _slot: OwnedSemaphorePermit,
    _reservation: Reservation,
}

struct Parts {
    gate: Gate,
    in_flight: Arc<Semaphore>,
    budget: ResponseBudget,
    watchers: Arc<Semaphore>,
    watchers_max: usize,
    rate: Option<RateLimit>,
    body_time: Duration,
}

impl Admission {
    /// Admits what the limits allow while the gate is open.
    pub fn new(gate: Gate, limits: &Limits) -> Self {
        refusals::count_from_zero();
        let watchers_max = limits.buffered_bytes_max / WATCHERS_SHARE / WATCHER_BYTES_MIN;
        let watchers_max = watchers_max.clamp(1, WATCHERS_MAX);
        Self(Arc::new(Parts {
            gate,
            in_flight: Arc::new(Semaphore::new(limits.in_flight_max)),
            budget: ResponseBudget::new(limits.buffered_bytes_max),
            watchers: Arc::new(Semaphore::new(watchers_max)),
            watchers_max,
            rate: RateLimit::new(limits.rate_per_second, limits.rate_burst),
            body_time: limits.body_time,
        }))
    }

    /// The memory budget for clients.
    pub fn budget(&self) -> &ResponseBudget {
        &self.0.budget
    }

    pub fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// Reserves a place for a watching client with this much memory. It does not count as a request in progress: an
    /// endless response would block others.
    ///
    /// # Errors
    /// There is no capacity, or the service is stopping: it would end the response immediately, and the client would
    /// reconnect immediately until its connection is refused.
    pub fn admit_watcher(&self, bytes: usize) -> Result<WatcherSlot, WatcherRefusal> {
        if self.0.gate.phase() == Phase::Stopping {
            return Err(WatcherRefusal::Stopping);
        }
        let count = bytes.div_ceil(WATCHER_BYTES_MIN).max(1);
        // A client that counts as more than all is admitted alone.
        let slots = u32::try_from(count.min(self.0.watchers_max)).unwrap_or(u32::MAX);
        let slot = Arc::clone(&self.0.watchers).try_acquire_many_owned(slots);
        let admitted = slot.ok().and_then(|slot| {
            let reservation = self.0.budget.reserve(count * WATCHER_BYTES_MIN)?;
            Some(WatcherSlot {
                _slot: slot,
                _reservation: reservation,
            })
        });
        admitted.ok_or_else(|| {
            refusals::count(refusals::WATCHERS);
            WatcherRefusal::TooMany
        })
    }
}

/// Admits a request: `identify` checks the caller's access, admission the limits.
pub async fn admit(
    identify: impl AsyncFnOnce(&ServiceRequest) -> Result<(), Problem>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    if let Some(route) = request.app_data::<RoutePath>() {
        RequestLog::of(&request).entry_mut().route = Some(route.clone());
    }
    let admission = request.app_data::<Data<Admission>>().cloned();
    let admitted = match &admission {
        Some(admission) => admission.0.pass(identify, &mut request).await,
        None => Err(Problem::internal("routes without admission")),
    };
    match admitted {
        // The slot is held until the response exists.
        Ok(_slot) => Ok(next.call(request).await?.map_into_left_body()),
        Err(problem) => {
            let payload = request.take_payload();
            body::leave(request.request(), payload);
            Ok(request.error_response(problem).map_into_right_body())
        }
    }
}

impl Parts {
    /// The steps in order. Cheap ones come first, and those that wait for the client come before those that
    /// others wait for.
    async fn pass(
        &self,
        identify: impl AsyncFnOnce(&ServiceRequest) -> Result<(), Problem>,
        request: &mut ServiceRequest,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        if self.gate.phase() == Phase::Starting {
            let problem = Problem::starting(self.gate.unready_reason());
            return Err(refusals::count_refusal(refusals::STARTING, problem));
        }
        if let Err(problem) = identify(request).await {
            // Refused callers also count, but only after their token was checked: behind a proxy, others with
            // the same address would be refused otherwise.
            self.pass_rate(request)?;
            return Err(problem);
        }
        self.pass_rate(request)?;
        body::read(request, self.body_time, &self.budget).await?;
        let slot = Arc::clone(&self.in_flight).try_acquire_owned();
        slot.map_err(|_| refusals::count_refusal(refusals::IN_FLIGHT, Problem::busy()))
    }

    fn pass_rate(&self, request: &ServiceRequest) -> Result<(), Problem> {
        let Some(rate) = &self.rate else {
            return Ok(());
        };
        let caller = request.extensions_mut().remove::<ProvenCaller>();
        let caller = caller.map(|ProvenCaller(name)| name);
        let standing = rate.count(&rate::key(caller, request.peer_addr()));
        ResponseHeaders::add(request, standing.headers());
        match standing.retry_seconds {
            None => Ok(()),
            Some(seconds) => Err(refusals::count_refusal(
                refusals::RATE,
                Problem::too_many(seconds),
            )),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight_max: 512,
            buffered_bytes_max: 128 * 1024 * 1024,
            body_time: Duration::from_secs(5),
            rate_per_second: 0,
            rate_burst: 0,
        }
    }
}

/// Tells the client to use another connection for its next request, once this service is stopping.
pub(super) fn end_when_stopping<B>(response: &mut ServiceResponse<B>) {
    let admission = response.request().app_data::<Data<Admission>>();
    if admission.is_some_and(|admission| admission.0.gate.phase() == Phase::Stopping) {
        let head = response.response_mut().head_mut();
        head.set_connection_type(ConnectionType::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watching_client_with_more_memory_counts_as_several() {
        let limits = Limits {
            buffered_bytes_max: 5 * WATCHER_BYTES_MIN * WATCHERS_SHARE,
            ..Limits::default()
        };
        let admission = Admission::new(Gate::serving(), &limits);
        let large = admission.admit_watcher(3 * WATCHER_BYTES_MIN + 1);
        let small = admission.admit_watcher(1);
        assert!(large.is_ok() && small.is_ok());
        let refused = admission.admit_watcher(1);
        assert_eq!(refused.err(), Some(WatcherRefusal::TooMany));
        drop(large);
        assert!(admission.admit_watcher(4 * WATCHER_BYTES_MIN).is_ok());
    }

    #[test]
    fn a_service_that_stops_takes_no_more_watching_clients() {
        let gate = Gate::serving();
        let admission = Admission::new(gate.clone(), &Limits::default());
        assert!(admission.admit_watcher(1).is_ok());
        gate.stop();
        let refused = admission.admit_watcher(1);
        assert_eq!(refused.err(), Some(WatcherRefusal::Stopping));
    }
}

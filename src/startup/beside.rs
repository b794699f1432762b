//! What runs beside the requests, as long as they are answered.

use tokio::task::JoinSet;

use super::metrics::ApiMetrics;
use super::{database, readiness, retention};
use crate::app::Service;
use crate::config::Settings;
use crate::http::Gate;
use crate::storage::postgres::{self, Probe, Store};
use hyperfleet_fleet::start::Prepared;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::supervise::{PAUSE, supervise};

/// What these tasks work with.
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) service: Service,
    pub(super) metrics: ApiMetrics,
    pub(super) gate: Gate,
    /// Fleet, if it is served.
    pub(super) fleet: Option<Prepared>,
    /// The one that the start asked the database with.
    pub(super) probe: Probe,
    /// How another one is made.
    pub(super) connections: postgres::Settings,
}

/// Starts them. One that panics is told, and starts again ([`hyperfleet_server_kit::supervise`]); all end with what is
/// returned.
pub(super) fn start(parts: Parts, settings: &Settings) -> JoinSet<()> {
    let Parts {
        store,
        service,
        metrics,
        gate,
        fleet,
        probe,
        connections,
    } = parts;
    let mut tasks = JoinSet::new();
    if let Some(fleet) = fleet {
        fleet.keep(&mut tasks);
    }
    tasks.spawn(supervise("close idle connections", PAUSE, move || {
        database::keep_trim(store.clone())
    }));
    let ping_time = settings.health.db_ping_timeout;
    let mut probe = Some(probe);
    tasks.spawn(supervise("watch the database", PAUSE, move || {
        let another = || Probe::new(connections.clone());
        let probe = probe.take().unwrap_or_else(another);
        readiness::watch(probe, ping_time, gate.clone())
    }));
    let stuck_threshold = settings.metrics.reconciliation_stuck_threshold;
    let counted = service.clone();
    tasks.spawn(supervise("keep the metrics", PAUSE, move || {
        let (metrics, service) = (metrics.clone(), counted.clone());
        metrics.keep(service, Clock::system(), stuck_threshold)
    }));
    if let Some(kept) = settings.audit.retention {
        tasks.spawn(supervise(
            "remove expired audit entries",
            PAUSE,
            move || retention::expire_audit(service.clone(), Clock::system(), kept),
        ));
    }
    tasks
}

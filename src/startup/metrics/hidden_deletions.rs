//! Finds deletions that no poller can see: resources that stay finalizing while every list leaves them out.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use hyperfleet_server_kit::telemetry::GaugeFamily;
use hyperfleet_service::app::{Service, Unreconciled};

const UNLISTED: &str = "hyperfleet_api_finalizing_resources_unlisted";

/// How long a resource may be finalizing, and an instance up, before a list should have included it.
pub(super) const PATIENCE: TimeDelta = TimeDelta::minutes(10);

/// What this process knows of deletions that its lists hide.
#[derive(Debug, Default)]
pub(super) struct HiddenDeletions {
    /// Time of the first look: lists that were answered before the start are unknown.
    since: Option<DateTime<Utc>>,
    /// Kinds that the log has a warning of.
    warned: BTreeSet<String>,
}

impl HiddenDeletions {
    /// Sets the gauge, with a series for each kind: an instance whose lists included finalizing resources shows 0,
    /// which a query over all instances sees. Warns once of each kind.
    pub(super) fn measure(
        &mut self,
        service: &Service,
        counted: &[Unreconciled],
        now: DateTime<Utc>,
    ) -> GaugeFamily {
        let since = *self.since.get_or_insert(now);
        let is_early = now - since < PATIENCE;
        let mut series = Vec::new();
        for kind in service.reconcilable_kinds() {
            let is_hidden = !is_early && service.hides_finalizing(kind);
            let of_kind = counted.iter().filter(|one| is_hidden && one.kind == kind);
            let resources: i64 = of_kind.map(|one| one.long_finalizing).sum();
            if resources > 0 && self.warned.insert(kind.to_owned()) {
                tracing::warn!(
                    kind,
                    resources,
                    to_do =
                        "send includeDeleted=true in polls, or set lists.include_deleted to true",
                    "no list or watch of this instance has included resources that have been finalizing for ten minutes"
                );
            }
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            series.push((
                vec![("resource_type", kind.to_lowercase())],
                resources as f64,
            ));
        }
        GaugeFamily {
            name: UNLISTED,
            series,
        }
    }
}

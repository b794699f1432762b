//! Earlier states: of one resource, of lists, of removed resources; and what happened in between.

mod events;
mod kept;
mod lists;
mod model;
mod sizes;
mod tenants;
mod tombstones;

use chrono::{DateTime, SecondsFormat, Utc};
use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::Value;

use crate::support::{child, linked, root};

/// How often the table of changes was scanned.
const TABLE_SCANS: &str = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'changes'";

/// A kind with an adapter and references, and one below it that needs no adapter.
fn kinds() -> Vec<EntityConfig> {
    vec![
        linked(
            &[("peer", "Site", 0, 2)],
            root("Site", "sites", &["dns", "net"]),
        ),
        child("Site", "cascade", root("Rack", "racks", &[])),
    ]
}

fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A resource without the times of reports that repeat what is known: they are not recorded.
fn recorded(resource: &Value) -> Value {
    let mut resource = resource.clone();
    let conditions = resource["status"]["conditions"].as_array_mut().unwrap();
    for condition in conditions {
        condition
            .as_object_mut()
            .unwrap()
            .remove("last_updated_time");
    }
    resource
}

use serde_json::{Map, Value, json};

use super::Observation;
use crate::domain::unit::OwnedUnit;

/// Most units that the data of a report lists.
const LISTED_MAX: usize = 100;

/// The report's data for other adapters and users: every unit with its machine and state.
pub(super) fn data(seen: &Observation<'_>) -> Map<String, Value> {
    let min_ready = |unit: &OwnedUnit| {
        let mut workloads = seen.desired.iter();
        let workload = workloads.find(|workload| workload.number == unit.owner.workload);
        workload.map_or_else(Default::default, |workload| workload.min_ready)
    };
    let mut units: Vec<&OwnedUnit> = seen.owned.iter().collect();
    units.sort_by_key(|unit| (unit.owner.workload, unit.owner.index, &unit.name));
    let left_out = units.len().saturating_sub(LISTED_MAX);
    let listed = units.iter().take(LISTED_MAX).map(|unit| {
        let report = unit.report();
        json!({
            "name": unit.name,
            "machine": unit.machine,
            "active": report.map(|report| &report.active),
            "sub": report.map(|report| &report.sub),
            "available": unit.is_ready(min_ready(unit)),
        })
    });
    let mut data = Map::new();
    data.insert("units".to_owned(), listed.collect());
    if left_out > 0 {
        data.insert("units_left_out".to_owned(), left_out.into());
    }
    data
}

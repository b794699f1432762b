//! Responses of fleet's API. Members are in alphabetical order, and empty ones are omitted, so an empty page is
//! `{}`. Clients read the same types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unit::{DesiredState, UnitOption};

/// A unit: its file, desired state and current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Unit)]
pub struct UnitView {
    /// The unit's state on its machine; absent for units that run on all machines.
    #[serde(
        default,
        rename = "currentState",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub current: Option<DesiredState>,
    /// Desired state.
    #[serde(default, rename = "desiredState")]
    #[schema(required = false)]
    pub desired: DesiredState,
    /// The machine that it is placed on.
    #[serde(default, rename = "machineID", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub machine: Option<String>,
    /// Name of the unit.
    #[schema(required = false, example = "web.service")]
    pub name: String,
    /// Its file, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub options: Vec<UnitOption>,
}

/// The state of a unit in the systemd of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitState)]
pub struct StateView {
    /// Hash of the unit's file on the machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub hash: String,
    /// The reporting machine.
    #[serde(
        default,
        rename = "machineID",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false)]
    pub machine: String,
    /// Name of the unit.
    #[serde(default, rename = "name", skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "web.service")]
    pub unit: String,
    /// systemd's active state.
    #[serde(
        default,
        rename = "systemdActiveState",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "active")]
    pub active: String,
    /// systemd's load state.
    #[serde(
        default,
        rename = "systemdLoadState",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "loaded")]
    pub load: String,
    /// systemd's sub state.
    #[serde(
        default,
        rename = "systemdSubState",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "running")]
    pub sub: String,
    /// Why the unit is not in its desired state, if the machine has failed to bring it there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "systemd refused its stop")]
    pub error: String,
}

/// A machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Machine)]
pub struct MachineView {
    /// Whether it is cordoned; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub cordoned: bool,
    /// Whether it is drained; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub draining: bool,
    /// Whether its agent does nothing until an operator orders it to resume, because etcd went back in time or is another one; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub halted: bool,
    /// Machine id.
    #[schema(required = false)]
    pub id: String,
    /// Configured metadata, and metadata set by requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub metadata: BTreeMap<String, String>,
    /// IP address.
    #[serde(
        default,
        rename = "primaryIP",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "192.0.2.7")]
    pub ip: String,
    /// Version of its agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "0.1.0")]
    pub version: String,
}

/// Progress of a machine's drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Drain)]
pub struct DrainView {
    /// Whether the machine is cordoned.
    pub cordoned: bool,
    /// Whether the remaining units must leave.
    pub draining: bool,
    /// Machine id.
    #[serde(rename = "machineID")]
    pub machine: String,
    /// How many units remain, without those that run on all machines.
    #[serde(rename = "unitCount")]
    #[schema(value_type = i64)]
    pub unit_count: u64,
    /// The first of them by name, at most one page.
    pub units: Vec<LeftUnit>,
}

/// A unit that remains on a drained machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftUnit {
    /// Name of the unit.
    #[schema(example = "web.service")]
    pub name: String,
    /// Why it cannot leave, if it must leave and cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

/// Moves that would even out the number of units per machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Rebalance)]
pub struct RebalanceView {
    /// Units per machine after the moves, including those that run on all machines.
    pub after: BTreeMap<String, u32>,
    /// Units per machine now.
    pub before: BTreeMap<String, u32>,
    /// The moves, in their order.
    pub moves: Vec<MoveView>,
}

/// A move of a unit between machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(as = Move)]
pub struct MoveView {
    /// The machine that it leaves.
    pub from: String,
    /// Name of the unit.
    #[schema(example = "web.service")]
    pub name: String,
    /// The machine that it is moved to.
    pub to: String,
}

/// A page of units, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnitPage {
    /// Token of the next page; absent on the last one.
    #[serde(
        default,
        rename = "nextPageToken",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub next: Option<String>,
    /// The units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub units: Vec<UnitView>,
}

/// A page of states, by unit and then by machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitStatePage)]
pub struct StatePage {
    /// Token of the next page; absent on the last one.
    #[serde(
        default,
        rename = "nextPageToken",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub next: Option<String>,
    /// The states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub states: Vec<StateView>,
}

/// A page of machines, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachinePage {
    /// The machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub machines: Vec<MachineView>,
    /// Token of the next page; absent on the last one.
    #[serde(
        default,
        rename = "nextPageToken",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub next: Option<String>,
}

/// Why a unit is where it is, or on no machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// Whether the unit cannot reach its desired state until something else changes: a machine, another unit, or
    /// its file. Absent if it can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub blocked: bool,
    /// The unit's state on its machine; absent for units that run on all machines.
    #[serde(
        default,
        rename = "currentState",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub current: Option<DesiredState>,
    /// Desired state.
    #[serde(rename = "desiredState")]
    pub desired: DesiredState,
    /// The machine that it is placed on.
    #[serde(default, rename = "machineID", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub machine: Option<String>,
    /// Name of the unit.
    #[schema(example = "web.service")]
    pub name: String,
    /// One sentence for people.
    pub reason: String,
    /// The machines that refuse it, by unmet requirement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub refusals: Vec<RefusalView>,
}

/// Machines that refuse a unit for the same requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Refusal)]
pub struct RefusalView {
    /// How many machines.
    #[schema(value_type = i64)]
    pub count: u64,
    /// Some of them, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub machines: Vec<String>,
    /// The unmet requirement.
    #[schema(example = "MachineMetadata=region=eu")]
    pub requirement: String,
}

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    /// The error.
    #[schema(inline)]
    pub error: ErrorView<'a>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorView<'a> {
    /// Status of the response.
    #[schema(value_type = i32, example = 404)]
    pub code: u16,
    /// For people; empty if the cause is internal or the status says everything.
    #[schema(example = "unit does not exist")]
    pub message: &'a str,
}

/// A deleted unit, or its deleted state on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitGone<'a> {
    /// The machine; absent for the unit itself.
    #[serde(rename = "machineID", skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<&'a str>,
    /// Name of the unit.
    pub name: &'a str,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(view: &impl Serialize) -> String {
        serde_json::to_string(view).unwrap()
    }

    #[test]
    fn empty_pages_and_options_are_empty_objects() {
        let (next, units, states, machines) = (None, vec![], vec![], vec![]);
        assert_eq!(
            text(&UnitPage {
                next: next.clone(),
                units
            }),
            "{}"
        );
        assert_eq!(
            text(&StatePage {
                next: next.clone(),
                states
            }),
            "{}"
        );
        assert_eq!(text(&MachinePage { machines, next }), "{}");
        let [name, section, value] = [const { String::new() }; 3];
        assert_eq!(
            text(&UnitOption {
                name,
                section,
                value
            }),
            "{}"
        );
    }

    #[test]
    fn members_stand_in_alphabetical_order() {
        let of = |text: &str| text.to_owned();
        let unit = UnitView {
            current: Some(DesiredState::Loaded),
            desired: DesiredState::Launched,
            machine: Some(of("m")),
            name: of("a.service"),
            options: vec![UnitOption {
                name: of("N"),
                section: of("S"),
                value: of("V"),
            }],
        };
        let explanation = ExplanationView {
            blocked: true,
            current: Some(DesiredState::Loaded),
            desired: DesiredState::Launched,
            machine: Some(of("m")),
            name: of("a.service"),
            reason: of("r"),
            refusals: vec![RefusalView {
                count: 1,
                machines: vec![of("m")],
                requirement: of("q"),
            }],
        };
        let state = StateView {
            hash: of("h"),
            machine: of("m"),
            unit: of("a.service"),
            active: of("a"),
            load: of("l"),
            sub: of("s"),
            error: String::new(),
        };
        let machine = MachineView {
            cordoned: true,
            draining: true,
            halted: true,
            id: of("m"),
            metadata: BTreeMap::from([(of("k"), of("v"))]),
            ip: of("i"),
            version: of("1"),
        };
        let drain = DrainView {
            cordoned: true,
            draining: true,
            machine: of("m"),
            unit_count: 1,
            units: vec![LeftUnit {
                name: of("a.service"),
                reason: Some(of("r")),
            }],
        };
        let next = Some(of("t"));
        for text in [
            text(&unit),
            text(&state),
            text(&machine),
            text(&explanation),
            text(&drain),
            text(&UnitPage {
                next: next.clone(),
                units: vec![unit],
            }),
            text(&StatePage {
                next: next.clone(),
                states: vec![state],
            }),
            text(&MachinePage {
                next,
                machines: vec![machine],
            }),
            text(&UnitGone {
                machine_id: Some("m"),
                name: "a",
            }),
        ] {
            // serde_json sorts objects.
            let sorted: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(sorted.to_string(), text);
        }
    }

    #[test]
    fn an_error_has_a_number_and_a_message_even_if_that_is_empty() {
        let body = ErrorBody {
            error: ErrorView {
                code: 500,
                message: "",
            },
        };
        assert_eq!(json!(body), json!({"error": {"code": 500, "message": ""}}));
    }
}

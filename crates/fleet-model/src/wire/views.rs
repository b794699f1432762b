//! Answers of fleet's API. Members stand in alphabetical order, and those that are empty are left out, so that an
//! empty page is `{}`. Clients read the same types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unit::{DesiredState, UnitOption};

/// One line of a unit file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitOption)]
pub struct OptionView {
    /// What is set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "ExecStart")]
    pub name: String,
    /// The section it stands in, without brackets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "Service")]
    pub section: String,
    /// To what.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "/usr/bin/sleep infinity")]
    pub value: String,
}

/// A unit: its file, what is wanted of it, and what has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Unit)]
pub struct UnitView {
    /// What its machine has done; absent for units that run on all machines.
    #[serde(
        default,
        rename = "currentState",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<State>, nullable = false)]
    pub current: Option<DesiredState>,
    /// What is wanted.
    #[serde(default, rename = "desiredState")]
    #[schema(value_type = Option<State>, nullable = false)]
    pub desired: DesiredState,
    /// The machine that it is placed on.
    #[serde(default, rename = "machineID", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub machine: Option<String>,
    /// What it is called.
    #[schema(required = false, example = "web.service")]
    pub name: String,
    /// Its file, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub options: Vec<OptionView>,
    /// What tells its file from others: 40 digits. Clients are not shown it.
    #[serde(skip)]
    pub hash: String,
    /// 1 at first, and one more with each change of its file or its desired state.
    /// Clients are not shown it.
    #[serde(skip)]
    pub generation: u64,
}

impl From<UnitOption> for OptionView {
    fn from(option: UnitOption) -> Self {
        Self {
            name: option.name,
            section: option.section,
            value: option.value,
        }
    }
}

impl From<OptionView> for UnitOption {
    fn from(option: OptionView) -> Self {
        Self {
            section: option.section,
            name: option.name,
            value: option.value,
        }
    }
}

/// How far a unit is, or is to be, brought.
#[derive(ToSchema)]
#[schema(as = State, rename_all = "lowercase")]
#[expect(dead_code, reason = "names of values: DesiredState knows no schemas")]
pub(super) enum State {
    Inactive,
    Loaded,
    Launched,
}

/// What systemd of one machine says of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitState)]
pub struct StateView {
    /// The hash of the unit's file that the machine has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub hash: String,
    /// Which machine says so.
    #[serde(
        default,
        rename = "machineID",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false)]
    pub machine: String,
    /// Of which unit.
    #[serde(default, rename = "name", skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "web.service")]
    pub unit: String,
    /// Whether it runs.
    #[serde(
        default,
        rename = "systemdActiveState",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "active")]
    pub active: String,
    /// Whether its file is read.
    #[serde(
        default,
        rename = "systemdLoadState",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "loaded")]
    pub load: String,
    /// What it does in detail.
    #[serde(
        default,
        rename = "systemdSubState",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "running")]
    pub sub: String,
}

/// A machine that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Machine)]
pub struct MachineView {
    /// Whether it takes no further units; absent if it takes units.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub cordoned: bool,
    /// Whether its units are to leave it; absent if they may stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub draining: bool,
    /// Its identity.
    #[schema(required = false)]
    pub id: String,
    /// What it says of itself, and what was set by requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub metadata: BTreeMap<String, String>,
    /// Where it is reached.
    #[serde(
        default,
        rename = "primaryIP",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(required = false, example = "192.0.2.7")]
    pub ip: String,
    /// The version of fleet that its agent is of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "0.1.0")]
    pub version: String,
}

/// How far the drain of a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Drain)]
pub struct DrainView {
    /// Whether the machine takes no further units.
    pub cordoned: bool,
    /// Whether the units that are left are to leave it.
    pub draining: bool,
    /// Which machine.
    #[serde(rename = "machineID")]
    pub machine: String,
    /// How many units are left; those that run on all machines do not count.
    #[serde(rename = "unitCount")]
    #[schema(value_type = i64)]
    pub unit_count: u64,
    /// The first of them by name, as many as a page holds.
    pub units: Vec<LeftUnit>,
}

/// A unit that is left on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftUnit {
    /// What it is called.
    #[schema(example = "web.service")]
    pub name: String,
    /// Why it cannot leave, if it is to leave and cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

/// Moves that would balance the number of units per machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Rebalance)]
pub struct RebalanceView {
    /// How many units each machine would have after the moves, those that run on all machines included.
    pub after: BTreeMap<String, u32>,
    /// How many it has.
    pub before: BTreeMap<String, u32>,
    /// The moves, in their order.
    pub moves: Vec<MoveView>,
}

/// A unit that goes from one machine to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Move)]
pub struct MoveView {
    /// The machine that it is on.
    pub from: String,
    /// What it is called.
    #[schema(example = "web.service")]
    pub name: String,
    /// The machine that it goes to.
    pub to: String,
}

/// Some units, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnitPage {
    /// For the next page; absent on the last one.
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

/// Some states, by unit and then by machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitStatePage)]
pub struct StatePage {
    /// For the next page; absent on the last one.
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

/// Some machines, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachinePage {
    /// The machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub machines: Vec<MachineView>,
    /// For the next page; absent on the last one.
    #[serde(
        default,
        rename = "nextPageToken",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub next: Option<String>,
}

/// Why a unit is where it is, or is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// What its machine has done; absent for units that run on all machines.
    #[serde(
        default,
        rename = "currentState",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<State>, nullable = false)]
    pub current: Option<DesiredState>,
    /// What is wanted.
    #[serde(rename = "desiredState")]
    #[schema(value_type = State)]
    pub desired: DesiredState,
    /// The machine that it is placed on.
    #[serde(default, rename = "machineID", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub machine: Option<String>,
    /// What it is called.
    #[schema(example = "web.service")]
    pub name: String,
    /// One sentence for people.
    pub reason: String,
    /// The machines that it cannot be placed on, by what refuses it there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub refusals: Vec<RefusalView>,
}

/// Machines that a unit cannot be placed on for the same requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Refusal)]
pub struct RefusalView {
    /// How many machines.
    #[schema(value_type = i64)]
    pub count: u64,
    /// Some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub machines: Vec<String>,
    /// What they do not meet.
    #[schema(example = "MachineMetadata=region=eu")]
    pub requirement: String,
}

/// The body of every answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    /// What went wrong.
    #[schema(inline)]
    pub error: ErrorView<'a>,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorView<'a> {
    /// The status of the answer.
    #[schema(value_type = i32, example = 404)]
    pub code: u16,
    /// For people; empty where the cause is not for clients, or there is no more to say than the status does.
    #[schema(example = "unit does not exist")]
    pub message: &'a str,
}

/// What is told of a unit, or of its state on a machine, that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitGone<'a> {
    /// On which machine; absent for the unit itself.
    #[serde(rename = "machineID", skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<&'a str>,
    /// Which unit.
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
            text(&OptionView {
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
            options: vec![OptionView {
                name: of("N"),
                section: of("S"),
                value: of("V"),
            }],
            hash: of("h"),
            generation: 1,
        };
        let explanation = ExplanationView {
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
        };
        let machine = MachineView {
            cordoned: true,
            draining: true,
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
            // serde_json's own objects are sorted.
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

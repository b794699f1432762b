//! Answers that only clients read: everything else is in `hyperfleet_fleet_model::wire`.

use std::collections::BTreeMap;

use hyperfleet_fleet_model::wire::{StatePage, StateView, UnitPage, UnitView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A machine of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub id: String,
    #[serde(default, rename = "primaryIP")]
    pub ip: String,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// No new units are placed there.
    #[serde(default)]
    pub cordoned: bool,
    /// Its ordinary units are moved away.
    #[serde(default)]
    pub draining: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct MachinePage {
    #[serde(default)]
    machines: Vec<Machine>,
    #[serde(default, rename = "nextPageToken")]
    next: Option<String>,
}

/// One page of a list.
pub(super) trait Page: DeserializeOwned {
    type Item;
    /// The path of the list.
    const PATH: &'static str;
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

impl Page for UnitPage {
    type Item = UnitView;
    const PATH: &'static str = "units";
    fn into_parts(self) -> (Vec<UnitView>, Option<String>) {
        (self.units, self.next)
    }
}

impl Page for StatePage {
    type Item = StateView;
    const PATH: &'static str = "state";
    fn into_parts(self) -> (Vec<StateView>, Option<String>) {
        (self.states, self.next)
    }
}

impl Page for MachinePage {
    type Item = Machine;
    const PATH: &'static str = "machines";
    fn into_parts(self) -> (Vec<Machine>, Option<String>) {
        (self.machines, self.next)
    }
}

/// The drain of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Drain {
    #[serde(default)]
    pub cordoned: bool,
    #[serde(default)]
    pub draining: bool,
    /// Ordinary units that are still there.
    #[serde(default)]
    pub units: Vec<RemainingUnit>,
}

/// A unit that is still on a machine that is drained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemainingUnit {
    pub name: String,
    /// Why it cannot move, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Moves that would spread units more evenly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RebalancePlan {
    #[serde(default)]
    pub moves: Vec<Move>,
    /// Units per machine ID.
    #[serde(default)]
    pub before: BTreeMap<String, u64>,
    #[serde(default)]
    pub after: BTreeMap<String, u64>,
}

/// A unit that changes its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub name: String,
    pub from: String,
    pub to: String,
}

/// The body of an error.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ErrorAnswer {
    #[serde(default)]
    pub(super) error: ErrorText,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ErrorText {
    #[serde(default)]
    pub(super) message: String,
}

/// The end of a list's stream of events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Gone {
    pub name: String,
    #[serde(default, rename = "machineID")]
    pub machine: Option<String>,
}

//! Responses as clients read them: pages of lists, errors, and deleted items.

use hyperfleet_fleet_model::wire::{
    MachinePage, MachineView, StatePage, StateView, UnitPage, UnitView,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

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
    type Item = MachineView;
    const PATH: &'static str = "machines";
    fn into_parts(self) -> (Vec<MachineView>, Option<String>) {
        (self.machines, self.next)
    }
}

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

/// An item that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Gone {
    pub name: String,
    #[serde(default, rename = "machineID")]
    pub machine: Option<String>,
}

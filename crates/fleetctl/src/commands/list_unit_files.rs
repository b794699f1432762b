//! `list-unit-files`: units with their desired and current states.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::UnitView;
use serde::Serialize;

use super::follow::follow;
use super::list::{Listing, Screen, Shown};
use super::list_units::shown_hash;
use super::named_units::is_global;
use crate::cli::ListArgs;
use crate::output::{self, Column, or_dash};
use crate::session::Session;
use crate::source::stored_options;

/// A unit as the list shows it.
#[derive(Debug, Serialize)]
struct ListedUnit {
    name: String,
    hash: String,
    #[serde(rename = "desiredState")]
    desired: DesiredState,
    #[serde(rename = "currentState", skip_serializing_if = "Option::is_none")]
    current: Option<DesiredState>,
    #[serde(rename = "machineID", skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    #[serde(rename = "global")]
    is_global: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
}

impl From<UnitView> for ListedUnit {
    fn from(unit: UnitView) -> Self {
        let is_description = |section: &str, name: &str| section == "Unit" && name == "Description";
        let mut options = unit.options.iter();
        let description = options.find(|option| is_description(&option.section, &option.name));
        Self {
            hash: stored_options(&unit).map_or_else(|_| String::new(), |o| o.hash().to_string()),
            is_global: is_global(&unit),
            description: description
                .map(|option| option.value.clone())
                .unwrap_or_default(),
            name: unit.name,
            desired: unit.desired,
            current: unit.current,
            machine: unit.machine,
        }
    }
}

fn target(unit: &ListedUnit, shown: &Shown) -> String {
    if unit.is_global {
        return "global".to_owned();
    }
    shown
        .machines
        .legend(unit.machine.as_deref().unwrap_or_default(), shown.detail)
}

const COLUMNS: [Column<ListedUnit, Shown>; 8] = [
    Column {
        name: "unit",
        text: |unit, _| unit.name.clone(),
    },
    Column {
        name: "hash",
        text: |unit, shown| or_dash(shown_hash(&unit.hash, shown.detail)),
    },
    Column {
        name: "dstate",
        text: |unit, _| unit.desired.to_string(),
    },
    Column {
        name: "state",
        text: |unit, _| match unit.current {
            Some(state) if !unit.is_global => state.to_string(),
            _ => "-".to_owned(),
        },
    },
    Column {
        name: "target",
        text: target,
    },
    Column {
        name: "global",
        text: |unit, _| unit.is_global.to_string(),
    },
    Column {
        name: "desc",
        text: |unit, _| or_dash(&unit.description),
    },
    Column {
        name: TMACHINE,
        text: target,
    },
];
const USUAL: &str = "unit,hash,dstate,state,target";
/// An older name of `target`.
const TMACHINE: &str = "tmachine";

pub(super) async fn run(session: &Session, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let mut listing = Listing::new(args, &COLUMNS, USUAL)?;
    let fields = args.fields.as_deref().unwrap_or_default();
    if fields.split(',').any(|field| field == TMACHINE) {
        output::notice("WARNING: The field tmachine is deprecated: use target.");
    }
    let client = session.client().await?;
    let failed = "Error retrieving list of units from repository";
    listing.shown.machines = session.machines().await.context(failed)?;
    if !args.watch {
        listing.print(client.unit_pages()).await.context(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut screen = Screen::default();
    let key = |unit: &UnitView| (unit.name.clone(), String::new());
    let watched = follow(client, "units", key, async |units| {
        let machines = &listing.shown.machines;
        let is_unknown = |unit: &UnitView| {
            unit.machine
                .as_ref()
                .is_some_and(|id| machines.get(id).is_none())
        };
        if units.values().any(is_unknown)
            && let Ok(machines) = session.machines().await
        {
            listing.shown.machines = machines;
        }
        let listed: Vec<ListedUnit> = units.values().cloned().map(Into::into).collect();
        screen.show(listing.text(listed.iter())?)
    });
    match watched.await.context(failed)? {}
}

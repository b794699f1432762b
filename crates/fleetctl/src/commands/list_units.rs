//! `list-units`: states of units, as machines report them.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::UnitHash;
use hyperfleet_fleet_model::wire::StateView;

use super::follow::follow;
use super::list::{Listing, Screen, Shown};
use crate::cli::ListArgs;
use crate::machines::Detail;
use crate::output::{Column, or_dash};
use crate::session::Session;

const COLUMNS: [Column<StateView, Shown>; 6] = [
    Column {
        name: "unit",
        text: |state, _| state.unit.clone(),
    },
    Column {
        name: "machine",
        text: |state, shown| shown.machines.legend(&state.machine, shown.detail),
    },
    Column {
        name: "active",
        text: |state, _| or_dash(&state.active),
    },
    Column {
        name: "sub",
        text: |state, _| or_dash(&state.sub),
    },
    Column {
        name: "load",
        text: |state, _| or_dash(&state.load),
    },
    Column {
        name: "hash",
        text: |state, shown| or_dash(shown_hash(&state.hash, shown.detail)),
    },
];
const USUAL: &str = "unit,machine,active,sub";

pub(super) fn shown_hash(hash: &str, detail: Detail) -> &str {
    match detail {
        Detail::Full => hash,
        Detail::Short => hash.get(..UnitHash::SHORT).unwrap_or(hash),
    }
}

pub(super) async fn run(session: &Session, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let mut listing = Listing::new(args, &COLUMNS, USUAL)?;
    let client = session.client().await?;
    let failed = "Error retrieving list of units from repository";
    listing.shown.machines = session.machines().await.context(failed)?;
    if !args.watch {
        listing
            .print(client.state_pages(None))
            .await
            .context(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut screen = Screen::default();
    let key = |state: &StateView| (state.unit.clone(), state.machine.clone());
    let watched = follow(client, "state", key, async |states| {
        let is_unknown = |state: &StateView| listing.shown.machines.get(&state.machine).is_none();
        if states.values().any(is_unknown)
            && let Ok(machines) = session.machines().await
        {
            listing.shown.machines = machines;
        }
        screen.show(listing.text(states.values())?)
    });
    match watched.await.context(failed)? {}
}

//! The fleet adapter: as a part of `serve`, and as a program of its own.
//!
//! ```text
//! settings ─▶ AdapterPlan ─▶ Role (a task) ◀── serve
//!                │              ▲
//!                └─ render      └──────────── fleet-adapter run
//! ```

mod plan;
mod render;
mod role;
mod run;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use hyperfleet_fleet::start::Prepared;
use hyperfleet_fleet_adapter::approval;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::program::print;

pub(super) use plan::AdapterPlan;
pub(super) use role::Role;

use super::fleet;
use crate::config::{self, FleetAdapterCommand, Settings, SettingsArgs};

/// Runs a command of the fleet adapter.
pub(super) async fn carry_out(command: FleetAdapterCommand) -> anyhow::Result<()> {
    match command {
        FleetAdapterCommand::Run(args) => run::run(&args).await,
        FleetAdapterCommand::Render(args) => render::render(&args),
        FleetAdapterCommand::ApproveRemovals(args) => approve_removals(&args).await,
    }
}

async fn approve_removals(args: &SettingsArgs) -> anyhow::Result<()> {
    let loaded = config::load(args, &Settings::default())?;
    let settings = &loaded.settings.fleet;
    let location = fleet::registry_location(settings).context(Misuse)?;
    let prepared = Prepared::new(location)?;
    let keys = approval::keys(&settings.etcd.key_prefix, &settings.adapter.name);
    let approved = approval::approve(&prepared.keys, &keys).await;
    approved.context("cannot write the approval to etcd")?;
    let (name, minutes) = (&settings.adapter.name, approval::SECONDS / 60);
    print(&format!(
        "Removals of the adapter {name} are approved for {minutes} minutes.\n"
    ));
    Ok(())
}

//! `import`: takes over the units of an old fleet.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use futures_util::TryStreamExt as _;
use hyperfleet_fleet_model::unit::{DesiredState, UnitHash};

use crate::cli::ImportArgs;
use crate::client::Client;
use crate::import::{Action, Import, fetch, old_units, plan};
use crate::output::{self, Table};
use crate::session::Session;
use crate::source::stored_options;

pub(super) async fn run(session: &Session, args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let dump = match (&args.file, &args.endpoints) {
        (Some(path), _) => {
            std::fs::read(path).with_context(|| format!("unable to read {}", path.display()))?
        }
        (None, endpoints) => {
            let endpoints = endpoints.as_deref().unwrap_or_default();
            fetch(
                endpoints,
                &args.prefix,
                &session.tls_files(),
                session.request_timeout(),
            )
            .await?
        }
    };
    let old = old_units(&dump, &args.prefix)?;
    let client = session.client().await?;
    let imports = plan(old, &units_here(client).await?);
    output::print(&text(&imports))?;
    let count = imports
        .iter()
        .filter(|import| import.action.is_change())
        .count();
    let problems = imports
        .iter()
        .filter(|import| import.action.is_problem())
        .count();
    if count > 0 && !args.dry_run {
        if !args.yes && !output::confirmed(&format!("Import {count} units?"))? {
            eprintln!("Nothing was written: use --yes to import without being asked.");
            return Ok(ExitCode::FAILURE);
        }
        let failed = carry_out(client, imports).await?;
        output::line(&format!("Imported {} units", count - failed))?;
        return Ok(exit(failed + problems));
    }
    Ok(exit(problems))
}

fn exit(problems: usize) -> ExitCode {
    if problems > 0 {
        eprintln!("{problems} units were not taken over; the table says why.");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn units_here(client: &Client) -> anyhow::Result<BTreeMap<String, (UnitHash, DesiredState)>> {
    let mut here = BTreeMap::new();
    let pages = client.unit_pages();
    tokio::pin!(pages);
    while let Some(page) = pages.try_next().await.context("Error retrieving units")? {
        for unit in page {
            let hash = stored_options(&unit)?.hash();
            here.insert(unit.name, (hash, unit.desired));
        }
    }
    Ok(here)
}

fn text(imports: &[Import]) -> String {
    let mut table = Table::new(["UNIT", "STATE", "ACTION"].map(str::to_owned).to_vec());
    for import in imports {
        table.push(vec![
            import.name.clone(),
            import.desired.to_string(),
            import.action.words(),
        ]);
    }
    table.take_text()
}

/// Creates units inactive, all of them first, and then brings them to their states: units that name each other find
/// each other. Gives how many failed.
async fn carry_out(client: &Client, imports: Vec<Import>) -> anyhow::Result<usize> {
    let (mut failed, mut stored) = (0, Vec::new());
    for import in imports {
        let created = match &import.action {
            Action::Create(options) => client.put_unit(&import.name, options.list()).await,
            Action::SetState => Ok(()),
            Action::Nothing | Action::Differs | Action::Invalid(_) => continue,
        };
        match created {
            Ok(()) => stored.push(import),
            Err(error) if error.status().is_some() => {
                eprintln!("Unable to create {}: {}", import.name, error.words());
                failed += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    for import in stored {
        let is_new = matches!(import.action, Action::Create(_));
        if is_new && import.desired == DesiredState::Inactive {
            continue;
        }
        if let Err(error) = client.set_desired(&import.name, import.desired).await {
            error
                .status()
                .ok_or_else(|| anyhow::anyhow!(error.to_string()))?;
            eprintln!(
                "Unable to set {} to {}: {}",
                import.name,
                import.desired,
                error.words()
            );
            failed += 1;
        }
    }
    Ok(failed)
}

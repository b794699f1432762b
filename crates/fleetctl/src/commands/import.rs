//! `import`: takes over the units of an old fleet.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hyperfleet_fleet_model::unit::{DesiredState, UnitHash};

use crate::cli::ImportArgs;
use crate::client::{Client, Error};
use crate::import::{Action, Import, fetch, old_units, plan};
use crate::output::{self, Table, counted};
use crate::session::Session;
use crate::source::stored_options;

/// Parallel writes.
const CALLS_MAX: usize = 16;

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
        if !args.yes && !output::confirmed(&format!("Import {}?", counted(count, "unit"))).await? {
            output::notice("Nothing was written: use --yes to import without being asked.");
            return Ok(ExitCode::FAILURE);
        }
        let failed = carry_out(client, imports).await?;
        output::line(&format!("Imported {}", counted(count - failed, "unit")))?;
        return Ok(exit(failed + problems));
    }
    Ok(exit(problems))
}

fn exit(problems: usize) -> ExitCode {
    if problems > 0 {
        output::notice(&format!(
            "Not imported: {}; see the list.",
            counted(problems, "unit")
        ));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Files and desired states of this cluster's units; `None` for a file that cannot be read.
async fn units_here(
    client: &Client,
) -> anyhow::Result<BTreeMap<String, (Option<UnitHash>, DesiredState)>> {
    let mut here = BTreeMap::new();
    let pages = client.unit_pages();
    tokio::pin!(pages);
    while let Some(page) = pages.try_next().await.context("Error retrieving units")? {
        for unit in page {
            let options = stored_options(&unit);
            if let Err(error) = &options {
                output::notice(&format!("WARNING: {error}"));
            }
            let hash = options.ok().map(|options| options.hash());
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

/// Creates all units as inactive, and then sets their states, so that units that refer to each other exist.
/// Returns how many failed.
async fn carry_out(client: &Client, imports: Vec<Import>) -> anyhow::Result<usize> {
    let changes = imports
        .into_iter()
        .filter(|import| import.action.is_change());
    let creates = stream::iter(changes).map(async |import| {
        let created = match &import.action {
            Action::Create(options) => {
                let inactive = DesiredState::Inactive;
                client
                    .put_unit(&import.name, options.list(), inactive)
                    .await
            }
            _ => Ok(()),
        };
        (import, created)
    });
    let (mut failed, mut stored) = (0, Vec::new());
    let mut creates = creates.buffered(CALLS_MAX);
    while let Some((import, created)) = creates.next().await {
        if is_refused(&format!("create {}", import.name), created)? {
            failed += 1;
        } else {
            stored.push(import);
        }
    }
    let is_new = |import: &Import| matches!(import.action, Action::Create(_));
    stored.retain(|import| !is_new(import) || import.desired != DesiredState::Inactive);
    let sets = stream::iter(stored).map(async |import| {
        let set = client.set_desired(&import.name, import.desired).await;
        (import, set)
    });
    let mut sets = sets.buffered(CALLS_MAX);
    while let Some((import, set)) = sets.next().await {
        let doing = format!("set {} to {}", import.name, import.desired);
        failed += usize::from(is_refused(&doing, set)?);
    }
    Ok(failed)
}

/// Whether the server refused one unit, which is printed. Any other failure ends the import.
fn is_refused(doing: &str, result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.status().is_some() => {
            output::notice(&format!("Unable to {doing}: {}", error.words()));
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

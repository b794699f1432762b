//! `hyperfleet-api dev`: everything on this machine, from nothing.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{commands, database, telemetry};
use crate::config::{DevArgs, Format, Settings};
use crate::dev::{Durability, PrivatePostgres};

/// Where data goes when we are root and the folder lies where the server's user cannot reach it.
const FALLBACK: &str = "/var/lib/hyperfleet";

/// Starts a private PostgreSQL unless another is named, brings its schema up to date, serves.
pub(super) async fn run(args: DevArgs) -> anyhow::Result<()> {
    let mut defaults = Settings::default();
    defaults.server.host = "127.0.0.1".to_owned();
    defaults.server.jwt.enabled = false;
    defaults.logging.format = Format::Text;
    let mut settings = Settings::load(&args.settings, &defaults)?;
    // What `dev` is for. A file that is meant for production may say otherwise.
    settings.server.jwt.enabled = false;
    telemetry::start(&settings.logging);

    let private = if settings.database.url.is_none() {
        let folder = data_folder(&args.data_dir)?;
        eprintln!("Starting a private PostgreSQL in {} ...", folder.display());
        let postgres = PrivatePostgres::start(&folder, Durability::Kept)?;
        settings.database.url = Some(postgres.url("postgres"));
        Some((postgres, folder))
    } else {
        None
    };
    let store = database::store(&settings.database)?;
    database::reach(&store, &settings.database).await?;
    store
        .migrate()
        .await
        .context("cannot bring the schema up to date")?;

    let listening = commands::listen(&settings, store)?;
    print_banner(
        &listening.server.address.to_string(),
        private.as_ref().map(|p| &*p.1),
    );
    let result = listening.run().await;
    if let Some((postgres, _)) = private {
        postgres.stop()?;
    }
    eprintln!("Stopped.");
    result
}

/// The folder as it was asked for, unless the server's user could not get there.
fn data_folder(wanted: &Path) -> anyhow::Result<PathBuf> {
    let wanted = std::path::absolute(wanted)?;
    if !rustix::process::geteuid().is_root() || is_reachable(&wanted) {
        return Ok(wanted);
    }
    let name = wanted
        .display()
        .to_string()
        .trim_matches('/')
        .replace('/', "-");
    Ok(Path::new(FALLBACK).join(name))
}

/// Whether everybody may pass through all folders above.
fn is_reachable(folder: &Path) -> bool {
    let above = folder.ancestors().skip(1);
    above
        .filter_map(|f| std::fs::metadata(f).ok())
        .all(|m| m.mode() & 0o001 != 0)
}

fn print_banner(address: &str, data: Option<&Path>) {
    let base = format!("http://{address}/api/hyperfleet/v1");
    let database = match data {
        Some(folder) => format!("private PostgreSQL in {}", folder.display()),
        None => "the PostgreSQL that was named".to_owned(),
    };
    println!(
        "
HyperFleet API     {base}
  authentication   off (for trying it on this machine only)
  database         {database}
  stop             Ctrl-C; data is kept

Try it:
  curl -s {base}/clusters
  curl -s -X POST {base}/clusters -H 'Content-Type: application/json' -d '{{\"kind\":\"Cluster\",\"name\":\"first\",\"spec\":{{}}}}'
  curl -s '{base}/audit?action=create'
"
    );
}

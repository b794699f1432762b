//! `hyperfleet-api dev`: everything on this machine, from nothing.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::banner::{Started, banner};
use super::demo::DemoAdapters;
use super::plan::Plan;
use super::process::{Addresses, Process};
use super::{database, telemetry};
use crate::config::{self, DevArgs, Settings};
use crate::dev::demo::USER_AGENT;
use hyperfleet_auth::Authentication;
use hyperfleet_devkit::{Durability, PostgresFailed, PrivatePostgres};
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::http::QuietClient;
use hyperfleet_server_kit::program::{print, print_to_stderr};
use hyperfleet_server_kit::shutdown;
use hyperfleet_storage::{Probe, Store};
use tokio::task::JoinSet;

/// Default folder of the data.
const DATA_FOLDER: &str = ".dev/postgres";
/// Folder of the data if root runs this and the server's user cannot reach the default.
const FALLBACK: &str = "/var/lib/hyperfleet";

/// Starts a private PostgreSQL unless another is named, brings its schema up to date, serves.
pub(super) async fn run(args: DevArgs) -> anyhow::Result<()> {
    let loaded = config::load(&args.settings, &config::dev_defaults())?;
    let mut plan = Plan::of(&loaded).context(Misuse)?;
    let mut settings = loaded.settings.clone();
    let telemetry = telemetry::start(&settings)?;
    telemetry::warn_of(&loaded.notes);
    telemetry::warn_of(&plan.notes);
    let mut process = Process::start(&loaded, std::mem::take(&mut plan.tls), telemetry.clone())?;

    let (mut private, mut folder) = (None, None);
    if let Some((key, origin)) = config::named_database(&loaded) {
        if args.data_dir.is_some() {
            let setting = format!("{key}, from {origin}");
            tracing::warn!(setting, "--data-dir ignored: the settings name a database");
        }
    } else {
        let folder = folder.insert(data_folder(args.data_dir.as_deref())?);
        let announce = |folder: &Path| {
            let folder = folder.display();
            print_to_stderr(&format!("Starting a private PostgreSQL in {folder} ..."));
        };
        let postgres = PrivatePostgres::start_announced(folder, Durability::Persistent, announce);
        let postgres = postgres.map_err(with_log_excerpt)?;
        settings.database.url = Some(postgres.url("postgres").into());
        private = Some(postgres);
    }
    let demo = DemoAdapters::of_dev(
        args.no_demo_adapter,
        private.is_some(),
        &settings,
        &plan.registry,
    );
    if demo.is_ok() {
        // Its requests would push the banner off the screen.
        process.quieten(QuietClient(USER_AGENT));
    }
    // Ends with the shutdown of the API.
    let mut demo_runs = JoinSet::new();
    let served = async {
        let store = database::store(&settings.database)?;
        let prepared = Box::pin(prepare(&settings, &store));
        match process.unless_ended(prepared).await {
            None => return Ok(()),
            Some(prepared) => prepared?,
        }
        let (kinds, gate) = (Arc::clone(&plan.registry), process.gate());
        let ready = |addresses: &Addresses, authentication: &Authentication| {
            let banner = banner(&Started {
                addresses,
                data: folder.as_deref(),
                authentication,
                demo: demo.as_ref().map(DemoAdapters::names).map_err(|why| *why),
                settings: &settings,
                kinds: &kinds,
            });
            print(&banner);
            if let Ok(demo) = demo {
                demo_runs.spawn(demo.run_beside(addresses.api, gate));
            }
        };
        process.serve(&settings, plan, store, ready).await
    };
    let result = tokio::select! {
        result = served => result,
        ended = end_of(private.as_mut()) => Err(with_log_excerpt(ended.into())),
    };
    if let Some(postgres) = private {
        postgres.stop()?;
    }
    shutdown::send_spans(telemetry.traces).await;
    print_to_stderr("Stopped.");
    result
}

async fn prepare(settings: &Settings, store: &Store) -> anyhow::Result<()> {
    let mut probe = Probe::new(database::connections(&settings.database)?);
    database::reach(&mut probe, &settings.database).await?;
    store
        .migrate(settings.database.pool.advisory_lock_timeout)
        .await
        .context("cannot bring the schema up to date")?;
    // Closes connections of the preparation: from now on each thread has its own.
    store.close_idle();
    Ok(())
}

/// Waits until the private server ends unexpectedly.
async fn end_of(postgres: Option<&mut PrivatePostgres>) -> PostgresFailed {
    let Some(postgres) = postgres else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Some(ended) = postgres.ended() {
            return ended;
        }
    }
}

/// Prints the end of the server's log, because an error in the program's log is a single line. This line names the log.
fn with_log_excerpt(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<PostgresFailed>() {
        Ok(failed) => {
            print_to_stderr(&failed.to_string());
            anyhow!("{}; its log is {}", failed.what(), failed.log().display())
        }
        Err(error) => error,
    }
}

/// The requested folder, or the default one, or another if the server's user cannot reach the default.
///
/// # Errors
/// The server's user cannot reach the requested folder.
fn data_folder(requested: Option<&Path>) -> anyhow::Result<PathBuf> {
    let wanted = std::path::absolute(requested.unwrap_or(Path::new(DATA_FOLDER)))?;
    if !rustix::process::geteuid().is_root() || is_reachable(&wanted) {
        return Ok(wanted);
    }
    if requested.is_some() {
        let folder = wanted.display();
        let error = format!(
            "cannot keep data in {folder}: PostgreSQL does not run as root, and other users cannot enter a folder \
             above; choose another folder with --data-dir"
        );
        return Err(anyhow!(error).context(Misuse));
    }
    // Each path has a name of its own.
    let name = wanted.display().to_string();
    let name = name.trim_matches('/').replace('%', "%25");
    let name = name.replace('-', "%2D").replace('/', "-");
    Ok(Path::new(FALLBACK).join(name))
}

/// Whether every user may pass all folders above.
fn is_reachable(folder: &Path) -> bool {
    let above = folder.ancestors().skip(1);
    above
        .filter_map(|f| std::fs::metadata(f).ok())
        .all(|m| m.mode() & 0o001 != 0)
}

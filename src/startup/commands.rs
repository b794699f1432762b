//! What each command does.

use std::io::{ErrorKind, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::CommandFactory as _;
use tokio::signal::unix::{SignalKind, signal};

use super::{Server, authentication, database, dev, telemetry};
use crate::app::Service;
use crate::auth::Authentication;
use crate::clock::Clock;
use crate::config::{
    self, Args, CheckArgs, CheckFormat, Command, ConfigCommand, DevTokenArgs, Loaded, OpenapiArgs,
    OpenapiFormat, Settings, SettingsArgs,
};
use crate::dev::token::{Claims, Minter};
use crate::domain::EntityRegistry;
use crate::domain::schema::Attached;
use crate::http::{self, Admission, Api, Build, Gate, Limits};
use crate::storage::postgres::Store;

/// How often expired audit entries are removed.
const RETENTION_PERIOD: Duration = Duration::from_hours(1);

/// This program.
const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("HYPERFLEET_BUILD_COMMIT"),
    time: env!("HYPERFLEET_BUILD_TIME"),
};

/// Runs a command to its end.
pub async fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Serve(args) => serve(&args).await,
        Command::Migrate(args) => migrate(&args).await,
        Command::Dev(args) => dev::run(args).await,
        Command::Config(ConfigCommand::Check(args)) => check(&args),
        Command::Config(ConfigCommand::Reference) => {
            print(&config::reference());
            Ok(())
        }
        Command::Openapi(args) => openapi(&args),
        Command::Completion { shell } => {
            let mut command = Args::command();
            clap_complete::generate(
                shell,
                &mut command,
                "hyperfleet-api",
                &mut std::io::stdout(),
            );
            Ok(())
        }
        Command::DevToken(args) => dev_token(args),
        Command::Version => {
            println!("version:    {}", BUILD.version);
            println!("commit:     {}", BUILD.commit);
            println!("build time: {}", BUILD.time);
            Ok(())
        }
    }
}

/// The settings of a command that logs, with the log started.
fn load(args: &SettingsArgs) -> anyhow::Result<Settings> {
    let loaded = Loaded::new(args, &Settings::default())?;
    telemetry::start(&loaded.settings.logging);
    tell(&loaded);
    Ok(loaded.settings)
}

/// Logs what the settings are, as far as they are not defaults, and what is odd about them.
pub(super) fn tell(loaded: &Loaded) {
    tracing::info!(settings = loaded.summary(), "settings");
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
}

/// Prints the settings and checks them as far as that goes without the database.
fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = Loaded::new(&args.settings, &Settings::default())?;
    let effective = loaded.effective();
    print(&match args.output {
        CheckFormat::Table => config::as_table(&effective),
        CheckFormat::Json => serde_json::to_string_pretty(&config::as_json(&effective))? + "\n",
    });
    let (mut notes, mut faults) = (loaded.notes, Vec::new());
    match loaded.settings.kinds() {
        Ok(kinds) => notes.extend(kinds.notes),
        Err(fault) => faults.push(fault),
    }
    faults.extend(authentication::issuers(&loaded.settings.server.jwt).err());
    for note in notes {
        eprintln!("note: {note}");
    }
    let faults: Vec<_> = faults.iter().map(|fault| format!("{fault:#}")).collect();
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// Prints to standard output. Whoever reads that may have left: that is no fault of ours.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

async fn serve(args: &SettingsArgs) -> anyhow::Result<()> {
    let settings = load(args)?;
    let issuers = authentication::issuers(&settings.server.jwt)?;
    let registry = kinds(&settings)?;
    let store = database::store(&settings.database)?;
    let schema = database::reach(&store, &settings.database).await?;
    if schema.missing > 0 {
        bail!(
            "the database lacks {} of the migrations that this program needs: run `hyperfleet-api migrate` first",
            schema.missing
        );
    }
    let clock = Clock::system();
    let authentication = authentication::start(issuers, &clock).await;
    let listening = listen(&settings, registry, store, clock, authentication)?;
    tracing::info!(address = %listening.server.address, "serving");
    listening.run().await
}

async fn migrate(args: &SettingsArgs) -> anyhow::Result<()> {
    let settings = load(args)?;
    let store = database::store(&settings.database)?;
    let before = database::reach(&store, &settings.database).await?;
    let after = store
        .migrate()
        .await
        .context("cannot bring the schema up to date")?;
    let applied = after.applied.saturating_sub(before.applied);
    println!(
        "The schema is up to date: {} migrations, {applied} more than before.",
        after.applied
    );
    if after.unknown > 0 {
        println!(
            "It is newer than this program, by {} migrations.",
            after.unknown
        );
    }
    Ok(())
}

/// Prints the document of the configured kinds.
fn openapi(args: &OpenapiArgs) -> anyhow::Result<()> {
    let settings = Loaded::new(&args.settings, &Settings::default())?.settings;
    let Attached { registry, notes } = settings.kinds()?;
    for note in notes {
        eprintln!("{note}");
    }
    let document = http::openapi(&registry, BUILD.version);
    let text = match args.format {
        OpenapiFormat::Yaml => http::yaml(&document)?,
        OpenapiFormat::Json => serde_json::to_string_pretty(&document)? + "\n",
    };
    print(&text);
    Ok(())
}

/// Prints a token, alone, so that a shell can take it.
fn dev_token(args: DevTokenArgs) -> anyhow::Result<()> {
    let minter = Minter::open(&args.folder)?;
    let claims = Claims {
        issuer: args.issuer,
        audience: args.audience,
        subject: args.subject,
        email: args.email,
        valid_for: args.valid_for,
    };
    let token = minter.mint(&claims, Clock::system().now())?;
    writeln!(std::io::stdout(), "{token}").context("cannot print the token")
}

/// The API with everything that runs beside it.
pub(super) struct Listening {
    pub(super) server: Server,
    service: Service,
    clock: Clock,
    retention: Option<Duration>,
}

/// The kinds that the settings name.
pub(super) fn kinds(settings: &Settings) -> anyhow::Result<Arc<EntityRegistry>> {
    let Attached { registry, notes } = settings.kinds()?;
    for note in notes {
        tracing::warn!("{note}");
    }
    Ok(Arc::new(registry))
}

/// Binds the API to the address that the settings name.
pub(super) fn listen(
    settings: &Settings,
    registry: Arc<EntityRegistry>,
    store: Store,
    clock: Clock,
    authentication: Authentication,
) -> anyhow::Result<Listening> {
    // What the start needed: from now on each thread has connections of its own.
    store.rest();
    let service = Service::new(store, registry, settings.lists.include_deleted);
    let (host, port) = (settings.server.host.as_str(), settings.server.port);
    let listener =
        TcpListener::bind((host, port)).map_err(|error| cannot_listen(&error, host, port))?;
    listener.set_nonblocking(true)?;
    let api = Api {
        service: service.clone(),
        clock: clock.clone(),
        build: BUILD,
        authentication,
        admission: Admission::new(Gate::serving(), &Limits::default()),
    };
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    // Each thread has connections of its own: one at least.
    let workers = processors.min(settings.database.pool.max_connections.max(1));
    Ok(Listening {
        server: Server::bind(listener, &api, workers)?,
        service,
        clock,
        retention: settings.audit.retention,
    })
}

fn cannot_listen(error: &std::io::Error, host: &str, port: u16) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => "it is in use; choose another with --server-port",
        ErrorKind::PermissionDenied => {
            "ports below 1024 are for root; choose another with --server-port"
        }
        _ => "choose an address of this machine with --server-host",
    };
    anyhow!("cannot listen on {host}:{port}: {advice} ({error})")
}

impl Listening {
    /// Serves until SIGTERM or SIGINT, then answers what is under way; a second signal ends the
    /// process at once.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let handle = self.server.handle();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let retention = self
            .retention
            .map(|kept| tokio::spawn(expire_audit(self.service.clone(), self.clock.clone(), kept)));
        let stopping = tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: answering what is under way; again to stop at once");
            let stop = handle.stop(true);
            tokio::select! {
                () = stop => {}
                _ = terminate.recv() => std::process::exit(1),
                _ = interrupt.recv() => std::process::exit(1),
            }
        });
        let result = self.server.run().await;
        stopping.abort();
        if let Some(retention) = retention {
            retention.abort();
        }
        Ok(result?)
    }
}

/// Removes audit entries when they are older than the setting says, now and then.
async fn expire_audit(service: Service, clock: Clock, kept: Duration) {
    loop {
        let kept = chrono::TimeDelta::from_std(kept).unwrap_or(chrono::TimeDelta::MAX);
        if let Some(before) = clock.now().checked_sub_signed(kept) {
            match service.expire_audit(before).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "removed expired audit entries"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!("expired audit entries stay for now: {error:#}");
                }
            }
        }
        tokio::time::sleep(RETENTION_PERIOD).await;
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::dev::token;

    #[test]
    fn the_issuer_of_dev_tokens_is_the_one_that_dev_knows() {
        let args = Args::parse_from(["hyperfleet-api", "dev-token"]);
        let Command::DevToken(args) = args.command else {
            panic!("{args:?}")
        };
        assert_eq!(args.issuer, token::ISSUER);
    }
}

//! What each command does.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::plan::Plan;
use super::process::Process;
use super::{database, dev, migrate};
use crate::config::{
    self, Args, CheckArgs, Command, ConfigCommand, DevTokenArgs, Loaded, OpenapiArgs, Settings,
    SettingsArgs,
};
use crate::dev::token::{Claims, Minter};
use crate::domain::entity_config::Attached;
use crate::http::{self, Build};
use crate::kit::clock::Clock;
use crate::kit::ending::Misuse;
use crate::kit::settings::{self, CheckFormat, OpenapiFormat};
use crate::kit::sockets::Addresses;
use crate::kit::telemetry::Telemetry;
use crate::kit::{shutdown, telemetry};

/// This program.
pub(super) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("HYPERFLEET_BUILD_COMMIT"),
    time: env!("HYPERFLEET_BUILD_TIME"),
};

/// Runs a command to its end; gives what the process is to end with.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    on_runtime(carry_out(args))
}

/// Runs something to its end. What it leaves behind is not waited for: a name that nobody resolves,
/// for instance, holds a thread for as long as the system's resolver likes, and nobody would listen to
/// signals any more.
pub(super) fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

async fn carry_out(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Serve(args) => Box::pin(serve(&args)).await?,
        Command::Migrate(args) => return migrate::run(&args).await,
        Command::Dev(args) => Box::pin(dev::run(args)).await?,
        Command::Config(ConfigCommand::Check(args)) => check(&args)?,
        Command::Config(ConfigCommand::Reference) => print(&config::reference()),
        Command::Openapi(args) => openapi(&args)?,
        Command::Completion { shell } => completion(shell, Args::command()),
        Command::DevToken(args) => dev_token(args)?,
        Command::Version => {
            let Build {
                version,
                commit,
                time,
            } = BUILD;
            print(&format!(
                "version:    {version}\ncommit:     {commit}\nbuild time: {time}\n"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the log of a command, and says there what its settings are.
pub(super) fn start(loaded: &Loaded) -> anyhow::Result<Telemetry> {
    let telemetry = telemetry::start(&loaded.settings, &BUILD)?;
    tracing::info!(settings = loaded.summary(), "settings");
    tell(loaded);
    Ok(telemetry)
}

/// Logs what is odd about where the settings come from.
pub(super) fn tell(loaded: &Loaded) {
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
}

async fn serve(args: &SettingsArgs) -> anyhow::Result<()> {
    let loaded = config::load(args, &Settings::default());
    let mut plan = Plan::of(&loaded).context(Misuse)?;
    let telemetry = start(&loaded)?;
    plan.tell();
    let settings = loaded.settings;
    let served = async {
        let store = database::store(&settings.database)?;
        let process = Process::start(&settings, std::mem::take(&mut plan.tls), telemetry.clone())?;
        let ready = |addresses: &Addresses, _: &_| {
            tracing::info!(address = %addresses.api, "serving");
        };
        process.serve(&settings, plan, store, ready).await
    };
    let result = Box::pin(served).await;
    shutdown::send_spans(telemetry.traces).await;
    result
}

/// Prints the settings and checks them as far as that goes without the database.
fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = config::load(&args.settings, &Settings::default());
    let notes = Plan::of(&loaded).map(|plan| plan.notes);
    print_check(&loaded, notes, args.output)
}

/// Prints settings with their values and where these come from, and what was noted of them and of the plan that was
/// made of them.
pub(super) fn print_check<S>(
    loaded: &settings::Loaded<S>,
    of_plan: anyhow::Result<Vec<String>>,
    format: CheckFormat,
) -> anyhow::Result<()> {
    // What has a fault has no value that could be shown.
    if loaded.is_sound() {
        let effective = loaded.effective();
        print(&match format {
            CheckFormat::Table => settings::as_table(&effective),
            CheckFormat::Json => {
                serde_json::to_string_pretty(&settings::as_json(&effective))? + "\n"
            }
        });
    }
    let of_plan_or_none = of_plan.as_ref().map_or(&[][..], |notes| notes);
    for note in loaded.notes.iter().chain(of_plan_or_none) {
        eprintln!("note: {note}");
    }
    of_plan.map(drop).context(Misuse)
}

/// Prints the document of the configured kinds, or that of fleet.
fn openapi(args: &OpenapiArgs) -> anyhow::Result<()> {
    let document = if args.fleet {
        http::fleet_openapi(BUILD.version)
    } else {
        openapi_of_kinds(args)?
    };
    let text = match args.format {
        OpenapiFormat::Yaml => http::yaml(&document)?,
        OpenapiFormat::Json => serde_json::to_string_pretty(&document)? + "\n",
    };
    print(&text);
    Ok(())
}

fn openapi_of_kinds(args: &OpenapiArgs) -> anyhow::Result<serde_json::Value> {
    let loaded = config::load(&args.settings, &Settings::default());
    let loaded = loaded.sound().context(Misuse)?;
    let Attached { registry, notes } = loaded.settings.kinds().context(Misuse)?;
    for note in notes {
        eprintln!("{note}");
    }
    Ok(http::openapi(&registry, BUILD.version))
}

/// Prints what makes a shell complete this command.
pub(super) fn completion(shell: clap_complete::Shell, mut command: clap::Command) {
    let (mut script, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script));
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

/// Prints to standard output. Whoever reads that may have left: that is no fault of ours.
pub(super) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use std::time::{Duration, Instant};

    use super::*;
    use crate::dev::token;

    #[test]
    fn what_hangs_when_all_is_done_is_not_waited_for() {
        let since = Instant::now();
        let done = on_runtime(async {
            let (begun, begins) = tokio::sync::oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let _ = begun.send(());
                std::thread::sleep(Duration::from_mins(1));
            });
            begins.await.unwrap();
            Ok("done")
        });
        assert_eq!(done.unwrap(), "done");
        assert!(since.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_issuer_of_dev_tokens_is_the_one_that_dev_knows() {
        let args = Args::parse_from(["hyperfleet-api", "dev-token"]);
        let Command::DevToken(args) = args.command else {
            panic!("{args:?}")
        };
        assert_eq!(args.issuer, token::ISSUER);
    }
}

//! Runs each command.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use super::BUILD;
use super::plan::{Plan, kinds};
use super::process::{Addresses, Process};
use super::{audit, database, demo, dev, fleet_adapter, healthcheck, import, migrate, telemetry};
use crate::config::{
    self, Args, CheckArgs, Command, ConfigCommand, DevTokenArgs, OpenapiArgs, Settings,
    SettingsArgs,
};
use crate::dev::token::{Claims, Minter};
use hyperfleet_domain::entity_config::Attached;
use hyperfleet_server_kit::check;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::openapi::print_document;
use hyperfleet_server_kit::program::{
    self, Build, print, print_completion, print_to_stderr, print_version,
};
use hyperfleet_server_kit::shutdown;
use hyperfleet_service::http;

/// Runs a command to its end; returns the exit code of the process.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    program::run(carry_out(args))
}

async fn carry_out(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Serve(args) => Box::pin(serve(&args)).await?,
        Command::Migrate(args) => return migrate::run(&args).await,
        Command::Import(args) => return Box::pin(import::run(&args)).await,
        Command::Audit(command) => return Box::pin(audit::run(&command)).await,
        Command::Dev(args) => Box::pin(dev::run(args)).await?,
        Command::DemoAdapter(args) => Box::pin(demo::run(&args)).await?,
        Command::Healthcheck(args) => healthcheck::run(&args).await?,
        Command::FleetAdapter(command) => Box::pin(fleet_adapter::carry_out(command)).await?,
        Command::Config(ConfigCommand::Check(args)) => check(&args)?,
        Command::Config(ConfigCommand::Reference) => print(&config::reference()),
        Command::Openapi(args) if args.fleet => {
            let document = hyperfleet_fleet::api::openapi(BUILD.version);
            print_document(&document, args.options.output)?;
        }
        Command::Openapi(args) => print_document(&openapi_of_kinds(&args)?, args.options.output)?,
        Command::Completion { shell } => print_completion(shell, config::command()),
        Command::DevToken(args) => dev_token(args)?,
        Command::Version(args) => {
            let Build {
                version,
                commit,
                time,
                ..
            } = BUILD;
            let text = format!("version:    {version}\ncommit:     {commit}\nbuild time: {time}\n");
            print_version(&BUILD, args.output, &text);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: &SettingsArgs) -> anyhow::Result<()> {
    let loaded = config::load(args, &Settings::default())?;
    let mut plan = Plan::of(&loaded).context(Misuse)?;
    let telemetry = telemetry::start_with(&loaded)?;
    telemetry::warn_of(&plan.notes);
    let settings = &loaded.settings;
    let served = async {
        let store = database::store(&settings.database)?;
        let process = Process::start(&loaded, std::mem::take(&mut plan.tls), telemetry.clone())?;
        let ready = |addresses: &Addresses, _: &_| {
            tracing::info!(address = %addresses.api, "serving");
        };
        process.serve(settings, plan, store, ready).await
    };
    let result = Box::pin(served).await;
    shutdown::send_spans(telemetry.traces).await;
    result
}

/// Prints the settings, and checks everything that needs no database.
fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = config::load(&args.settings, &Settings::default())?;
    let notes = Plan::of(&loaded).map(|plan| plan.notes);
    check::print_check(&loaded, notes, args.options)
}

fn openapi_of_kinds(args: &OpenapiArgs) -> anyhow::Result<serde_json::Value> {
    let loaded = config::load(&args.settings, &Settings::default())?;
    let Attached { registry, notes } = kinds(&loaded)?;
    for note in notes {
        print_to_stderr(&note);
    }
    let document = http::openapi(&registry, BUILD.version);
    Ok(if args.plain {
        http::plain_openapi(document)
    } else {
        document
    })
}

/// Prints only a token, for use in a shell.
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

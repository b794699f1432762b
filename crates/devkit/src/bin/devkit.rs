//! Starts private servers for scripts, tests and benches: see [`USAGE`]. It compiles while no other crate does.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode};

use anyhow::{Context as _, bail};
use hyperfleet_devkit::{Durability, PrivateEtcd, PrivatePostgres, find_etcd, find_programs};

const USAGE: &str = "usage: scripts/devkit …
  postgres [NAME=VALUE…] COMMAND…  run a command with DATABASE_URL set to a temporary PostgreSQL with these settings
  etcd COMMAND…                    the same with ETCD_URL, and a temporary etcd
  services                         start both, print their addresses, and stop them at Ctrl-C
  find postgres|etcd               print the folder of PostgreSQL's server programs, or the path of etcd's";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next().unwrap_or_default();
    let rest: Vec<_> = arguments.collect();
    let done = match first.to_str() {
        Some("postgres") => with_postgres(rest),
        Some("etcd") => with_etcd(&rest),
        Some("services") => services(),
        Some("find") => find(&rest),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    done.unwrap_or_else(|error| {
        // Without a reader, the exit code suffices.
        let _ = writeln!(io::stderr(), "{error:#}");
        ExitCode::FAILURE
    })
}

fn with_postgres(mut arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let is_setting = |argument: &OsString| argument.to_str().is_some_and(|text| text.contains('='));
    let count = arguments
        .iter()
        .take_while(|argument| is_setting(argument))
        .count();
    let command = arguments.split_off(count);
    let settings = arguments
        .iter()
        .map(|setting| setting.to_string_lossy().into_owned());
    let server = start_postgres(&settings.collect::<Vec<_>>())?;
    // Also makes psql available.
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(find_programs(Path::new(""))?);
    let code = run(&command, |command| {
        command
            .env("DATABASE_URL", server.url("postgres"))
            .env("PATH", path)
    })?;
    server.stop()?;
    Ok(code)
}

fn with_etcd(command: &[OsString]) -> anyhow::Result<ExitCode> {
    let (folder, server) = start_etcd()?;
    let code = run(command, |command| command.env("ETCD_URL", server.url()))?;
    drop(server);
    fs::remove_dir_all(folder)?;
    Ok(code)
}

/// The servers end with this thread, however the process ends.
fn services() -> anyhow::Result<ExitCode> {
    let postgres = start_postgres(&[])?;
    let (_, etcd) = start_etcd()?;
    let (database, etcd) = (postgres.url("postgres"), etcd.url());
    writeln!(
        io::stdout(),
        "export DATABASE_URL='{database}'\nexport ETCD_URL='{etcd}'"
    )?;
    writeln!(
        io::stderr(),
        "services: both are gone when this ends; Ctrl-C stops them"
    )?;
    loop {
        std::thread::park();
    }
}

fn find(what: &[OsString]) -> anyhow::Result<ExitCode> {
    let found = match what.first().and_then(|what| what.to_str()) {
        Some("postgres") => find_programs(Path::new(""))?,
        Some("etcd") => find_etcd()?,
        _ => bail!(USAGE),
    };
    writeln!(io::stdout(), "{}", found.display())?;
    Ok(ExitCode::SUCCESS)
}

fn start_postgres(settings: &[String]) -> anyhow::Result<PrivatePostgres> {
    let folder = env::temp_dir().join(format!("hyperfleet-postgres-{}", process::id()));
    PrivatePostgres::start_with(&folder, Durability::ThrownAway, settings)
}

fn start_etcd() -> anyhow::Result<(PathBuf, PrivateEtcd)> {
    let folder = env::temp_dir().join(format!("hyperfleet-etcd-{}", process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut server = PrivateEtcd::new(&folder)?;
    server.start()?;
    Ok((folder, server))
}

/// Runs a command; its exit code is that of this program.
fn run(
    command: &[OsString],
    prepare: impl FnOnce(&mut Command) -> &mut Command,
) -> anyhow::Result<ExitCode> {
    let [program, arguments @ ..] = command else {
        bail!(USAGE);
    };
    let mut command = Command::new(program);
    let status = prepare(command.args(arguments)).status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

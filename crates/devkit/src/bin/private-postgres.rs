//! Runs a command with `DATABASE_URL` set to a temporary PostgreSQL. Without a command it prints the folder of
//! PostgreSQL's server programs. For scripts, which thus work while no other crate compiles.

use std::env;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{self, Command, ExitCode};

use anyhow::Context as _;
use hyperfleet_devkit::{Durability, PrivatePostgres, find_programs};

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        // Without a reader, the exit code suffices.
        let _ = writeln!(io::stderr(), "{error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        writeln!(io::stdout(), "{}", find_programs(Path::new(""))?.display())?;
        return Ok(ExitCode::SUCCESS);
    };
    let folder = env::temp_dir().join(format!("hyperfleet-postgres-{}", process::id()));
    let server = PrivatePostgres::start(&folder, Durability::ThrownAway)?;
    // Also makes psql available.
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(find_programs(Path::new(""))?);
    let status = Command::new(&program)
        .args(arguments)
        .env("DATABASE_URL", server.url("postgres"))
        .env("PATH", path)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    server.stop()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

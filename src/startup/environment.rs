//! Variables that would say something past the settings.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::anyhow;

/// What the driver of PostgreSQL reads by itself. For most of it the settings have the last word, but
/// what `PGOPTIONS`, `PGSSLCERT` and `PGSSLKEY` say cannot be taken back once the driver has seen it.
const OF_POSTGRES: [&str; 13] = [
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGUSER",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGDATABASE",
    "PGAPPNAME",
    "PGOPTIONS",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGSSLCERT",
    "PGSSLKEY",
];

/// Starts this program anew without the variables of PostgreSQL's clients, if there are any: how the
/// database is reached is for the settings alone to say. To be called before anything else.
///
/// It stays the same process. Taking single variables out of a program that runs is not safe in Rust,
/// because other threads may be reading them.
///
/// # Errors
///
/// It cannot be started anew. Otherwise it returns only where there are none.
pub fn leave_out_postgres() -> anyhow::Result<()> {
    let is_set = |name: &&&str| std::env::var_os(name).is_some();
    let set: Vec<_> = OF_POSTGRES.iter().filter(is_set).copied().collect();
    if set.is_empty() {
        return Ok(());
    }
    let mut args = std::env::args_os();
    let mut again = Command::new(std::env::current_exe()?);
    if let Some(name) = args.next() {
        again.arg0(name);
    }
    again.args(args);
    for name in &set {
        again.env_remove(name);
    }
    let error = again.exec();
    Err(anyhow!(
        "cannot start anew without {}, which must not count: {error}; unset them",
        set.join(", ")
    ))
}

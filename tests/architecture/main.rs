//! The rules of structure that the compiler does not know: no cycles of modules, words that a layer must not contain, and
//! names of public types.
//!
//! Which crate uses which is compared with the table of `docs/internals/architecture.md`, so that the page is true by test.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

mod cycles;
mod modules;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hyperfleet_testkit::files_below;

use crate::cycles::cycles;
use crate::modules::Modules;

const PAGE: &str = "docs/internals/architecture.md";

/// Words that the code of a layer must not contain.
#[rustfmt::skip]
const NEVER: &[(&str, &[&str])] = &[
    ("crates/domain/src", &["async ", "tokio", "sqlx", "actix", "utoipa", "deadpool", "Utc::now", "Instant::now", "SystemTime", "now_v7", "std::fs", "std::net", "std::env"]),
    ("crates/storage/src", &["actix", "utoipa", "Utc::now"]),
    ("crates/service/src/wire", &["async ", "tokio", "sqlx", "actix", "Utc::now"]),
    ("crates/service/src/app", &["sqlx", "actix", "utoipa", "deadpool", "Utc::now"]),
    ("crates/auth/src", &["sqlx", "deadpool", "actix", "utoipa", "anyhow", "Utc::now"]),
    ("crates/service/src/http", &["sqlx", "deadpool", "Utc::now"]),
    ("crates/import/src", &["actix", "utoipa", "deadpool", "Utc::now"]),
    ("src/config", &["sqlx", "actix", "tokio"]),
    ("crates/audit/src", &["async ", "tokio", "sqlx", "actix", "Utc::now", "Instant::now", "SystemTime", "std::fs", "std::net", "std::env"]),
    ("crates/expressions/src", &["async ", "tokio", "sqlx", "actix", "Utc::now", "Instant::now", "SystemTime", "std::fs", "std::net", "std::env"]),
    ("crates/fleet-model/src", &["async ", "tokio", "actix", "Utc::now", "Instant::now", "SystemTime", "std::fs", "std::net", "std::env"]),
    ("crates/fleet/src/registry", &["actix", "utoipa", "etcd_client", "Utc::now"]),
    ("crates/fleet/src/engine", &["actix", "utoipa", "etcd_client", "Utc::now"]),
];

/// Circles that are still there; a new one fails, and so does one in this list that is gone.
const KNOWN_CYCLES: &[&str] = &[];

#[test]
fn no_siblings_name_each_other() {
    let mut found = Vec::new();
    for folder in crates() {
        let root = folder.join("src/lib.rs");
        let name = folder.display().to_string();
        let of_crate = cycles(&Modules::read(&root));
        found.extend(of_crate.into_iter().map(|cycle| format!("{name} {cycle}")));
    }
    assert_eq!(found, KNOWN_CYCLES);
}

#[test]
fn crates_depend_on_exactly_what_the_page_says() {
    let mut used = BTreeMap::new();
    for folder in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("\n[dependencies]").unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap();
        let ours = dependencies
            .lines()
            .filter_map(|line| line.strip_prefix("hyperfleet-"));
        let ours = ours.map(|line| line.split(['.', ' ']).next().unwrap().to_owned());
        let name = folder
            .file_name()
            .map_or("hyperfleet-api", |name| name.to_str().unwrap());
        used.insert(name.to_owned(), ours.collect::<BTreeSet<_>>());
    }
    assert_eq!(used, table("crate"));
}

#[test]
fn no_layer_contains_words_of_another() {
    let mut broken = Vec::new();
    for (folder, never) in NEVER {
        for file in rust_files(folder)
            .into_iter()
            .filter(|file| !is_for_tests(file))
        {
            for (index, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                for word in never.iter().filter(|word| code.contains(**word)) {
                    broken.push(format!("{}:{}: {word}", file.display(), index + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Libraries of servers, which clients of fleet's API need not link.
const SERVERS_ONLY: [&str; 7] = [
    "actix",
    "etcd-client",
    "hyperfleet-fleet ",
    "hyperfleet-server-kit",
    "sqlx",
    "tonic",
    "zbus",
];

#[test]
fn fleetctl_links_no_library_of_servers() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--offline",
        "--package",
        "fleetctl",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ]);
    let output = tree.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(
        tree.contains("hyperfleet-fleet-model "),
        "it looks at the wrong tree: {tree}"
    );
    let is_server = |line: &&str| SERVERS_ONLY.iter().any(|name| line.starts_with(name));
    assert_eq!(tree.lines().find(is_server), None);
}

/// What the page says of each layer or crate: the rows of the table whose first heading is this.
fn table(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(PAGE).unwrap();
    let start = format!("| {heading} |");
    let rows = page.lines().skip_while(|line| !line.starts_with(&start));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').collect();
        let names = |cell: &str| -> BTreeSet<String> {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        let name = names(cells[0]).pop_first().unwrap();
        (name, names(cells.last().unwrap()))
    })
    .collect()
}

fn is_for_tests(file: &Path) -> bool {
    let mut names = file.iter().map(|name| name.to_string_lossy());
    names.any(|name| name == "tests" || name == "tests.rs")
}

/// The folders of the workspace's crates, the root's first.
fn crates() -> Vec<PathBuf> {
    let below = fs::read_dir("crates").unwrap();
    let mut folders: Vec<_> = below.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.insert(0, PathBuf::from("."));
    folders
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut files = files_below(Path::new(folder));
    files.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    files
}

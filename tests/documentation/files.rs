//! Files, packages and migrations that pages name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hyperfleet_testkit::files_below;

use crate::{code_spans, documents, lines};

/// Folders of the repository.
const FOLDERS: [&str; 16] = [
    ".ci/",
    "bench/",
    "benches/",
    "charts/",
    "crates/",
    "deploy/",
    "docs/",
    "examples/",
    "fuzz/",
    "migrations/",
    "openapi/",
    "packaging/",
    "scripts/",
    "src/",
    "tests/",
    ".sqlx/",
];
/// Folders that commands create.
const CREATED: [&str; 2] = ["fuzz/found", "fuzz/artifacts"];

/// From the root of the repository, or, for a Rust file, from the folder of sources of a crate.
#[test]
fn paths_in_backticks_exist() {
    let sources = source_files();
    let (mut missing, mut count) = (Vec::new(), 0);
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for path in code_spans(&text).iter().filter(|span| is_path(span)) {
            let is_rooted = FOLDERS.iter().any(|folder| path.starts_with(folder));
            let is_created = CREATED.iter().any(|folder| path.starts_with(folder));
            let is_rust = Path::new(path).extension().is_some_and(|e| e == "rs");
            if is_created || !(is_rooted || is_rust) {
                continue;
            }
            count += 1;
            let below_a_crate = || sources.iter().any(|file| file.ends_with(path));
            if !(Path::new(path).exists() || is_rust && below_a_crate()) {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
    assert!(count > 100, "it looks at the wrong places: {count}");
}

/// A migration's name is the file's, without its time.
#[test]
fn the_page_of_the_database_lists_every_migration() {
    let page = fs::read_to_string("docs/internals/database.md").unwrap();
    let (_, table) = page.split_once("| migration |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let mut listed: Vec<_> = names.map(str::to_owned).collect();
    listed.sort_unstable();
    let files = files_below(Path::new("migrations"));
    let stems = files
        .iter()
        .map(|file| file.file_stem().unwrap().to_str().unwrap());
    // Not schema.sql, which shows what they make together.
    let mut existing: Vec<_> = stems
        .filter_map(|stem| Some(stem.split_once('_')?.1.to_owned()))
        .collect();
    existing.sort_unstable();
    assert_eq!(listed, existing);
}

/// Our own, or Debian's that `scripts/setup` installs too: their names are tested there.
#[test]
fn packages_of_commands_exist() {
    let setup = fs::read_to_string("scripts/setup").unwrap();
    let known: BTreeSet<_> = setup.split(|c: char| !is_of_a_name(c)).collect();
    let (mut unknown, mut count) = (Vec::new(), 0);
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for package in lines(&text, true).flat_map(packages) {
            count += 1;
            let is_own = Path::new("crates").join(package).exists() || package == "hyperfleet-api";
            if !is_own && !known.contains(package) {
                unknown.push(format!("{}: {package}", document.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "\n{}", unknown.join("\n"));
    assert!(count > 3, "it looks at the wrong places: {count}");
}

/// The packages that a line installs; of a file only its package.
fn packages(line: &str) -> Vec<&str> {
    let behind = ["apt-get install ", "apt install "]
        .iter()
        .find_map(|command| line.split_once(command));
    let words = behind.map_or("", |(_, rest)| rest).split(' ');
    let words = words.take_while(|word| !["&&", "||", ";", "#", ""].contains(word));
    let words = words.filter(|word| !word.starts_with('-'));
    words
        .map(|word| {
            let name = word.rsplit('/').next().unwrap();
            let name = name.trim_end_matches(['\'', '"', ';']);
            name.split('_').next().unwrap()
        })
        .collect()
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-+.".contains(c)
}

fn is_path(span: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    span.contains('/') && span.chars().all(is_part)
}

fn source_files() -> Vec<PathBuf> {
    let mut files = files_below(Path::new("src"));
    files.extend(files_below(Path::new("crates")));
    files
}

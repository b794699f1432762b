//! What a release promises to the one before it: migrations that it can live with, and one version everywhere.
//!
//! The rules are in `docs/operations/upgrades.md`; that two releases really serve beside each other shows
//! `tests/it/faults/upgrade.rs`.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

mod compatibility;
mod records;
mod statements;

use std::collections::BTreeMap;
use std::fs;

use sha2::{Digest as _, Sha256};

use crate::compatibility::breaches;
use crate::records::{Release, Series, releases};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Every migration, by its file's name.
fn migrations() -> BTreeMap<String, String> {
    let mut files = sql_files("migrations");
    files
        .remove("schema.sql")
        .expect("the schema that they make together");
    files
}

fn sql_files(folder: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let read = files.map(|file| {
        let name = file.file_name().into_string().unwrap();
        (name, fs::read_to_string(file.path()).unwrap())
    });
    read.collect()
}

fn sum(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .fold(String::new(), |sum, byte| format!("{sum}{byte:02x}"))
}

#[test]
fn released_migrations_are_as_they_were_released() {
    let migrations = migrations();
    for Release {
        version,
        migrations: released,
        ..
    } in releases()
    {
        for (name, expected) in released {
            let text = migrations.get(&name);
            let text = text.unwrap_or_else(|| panic!("{name} of {version} is gone"));
            assert_eq!(
                sum(text),
                expected,
                "{name} was released with {version}: write another migration instead of changing it"
            );
        }
    }
}

#[test]
fn new_migrations_follow_the_released_ones_and_leave_the_release_before_working() {
    let releases = releases();
    let known: Vec<_> = releases.iter().flat_map(|r| r.migrations.keys()).collect();
    let last = known.iter().max().map_or("", |name| name.as_str());
    let new: Vec<_> = migrations()
        .into_iter()
        .filter(|(name, _)| !known.contains(&name))
        .collect();
    for (name, _) in &new {
        assert!(
            name.as_str() > last,
            "{name} has a lower number than {last}, which is released"
        );
    }
    let found = breaches(&new, &releases, Series::of(VERSION));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// What the test of upgrades applies as if it came with the next release.
#[test]
fn migrations_of_the_upgrade_test_are_allowed() {
    let next: Vec<_> = sql_files("tests/fixtures/next-release")
        .into_iter()
        .collect();
    assert!(!next.is_empty());
    let found = breaches(&next, &releases(), Series::of(VERSION));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The scan reads all that was ever written: what makes the first tables changes none that was there.
#[test]
fn released_migrations_together_are_allowed() {
    let all: Vec<_> = migrations().into_iter().collect();
    let found = breaches(&all, &[], Series::of("0.0.0"));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_version_follows_the_releases_and_is_the_same_everywhere() {
    let releases = releases();
    let last = releases.last().unwrap();
    assert!(
        Series::of(VERSION) > Series::of(&last.version) || patch(VERSION) > patch(&last.version),
        "{VERSION} does not follow {}: scripts/version sets the next",
        last.version
    );
    let lock = fs::read_to_string("fuzz/Cargo.lock").unwrap();
    let package = format!("name = \"hyperfleet-domain\"\nversion = \"{VERSION}\"\n");
    assert!(lock.contains(&package), "fuzz/Cargo.lock: scripts/version");
    for sample in [
        "charts/hyperfleet/README.md",
        "charts/hyperfleet/ci/default-values.yaml",
        "docs/guides/fleet-quickstart.md",
        "docs/guides/moving-from-coreos-fleet.md",
        "docs/operations/kubernetes.md",
        "docs/operations/monitoring.md",
        "docs/reference/fleet-api.md",
    ] {
        let text = fs::read_to_string(sample).unwrap();
        assert!(text.contains(VERSION), "{sample}: scripts/version");
    }
}

fn patch(version: &str) -> (Series, u32) {
    let number = version.split(['.', '-']).nth(2).unwrap();
    (Series::of(version), number.parse().unwrap())
}

#[test]
fn the_changelog_has_every_release_and_what_comes_next() {
    let text = fs::read_to_string("CHANGELOG.md").unwrap();
    let headings: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## ["))
        .filter_map(|heading| heading.split_once(']'))
        .collect();
    let mut expected: Vec<_> = releases().into_iter().map(|r| r.version).collect();
    expected.reverse();
    let next = if VERSION.ends_with("-dev") {
        "Unreleased"
    } else {
        VERSION
    };
    expected.insert(0, next.to_owned());
    let names: Vec<_> = headings.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected);
    for (name, date) in headings {
        let is_dated = date.strip_prefix(" - ").is_some_and(|date| {
            let parts: Vec<_> = date.split('-').map(str::len).collect();
            parts == [4, 2, 2]
        });
        assert_eq!(is_dated, name != "Unreleased", "{name}{date}");
    }
}

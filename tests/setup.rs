//! What `scripts/setup` says of programs that are missing.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

/// What the script itself needs.
const TOOLS: [&str; 9] = [
    "bash", "env", "sed", "sort", "head", "dirname", "cargo", "rustup", "rustc",
];

/// The end of `setup GROUP` for a user who is not root, and what it says. Only these programs are there.
fn setup(group: &str, programs: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for name in TOOLS {
        let found = std::env::split_paths(&path).map(|folder| folder.join(name));
        if let Some(found) = found.into_iter().find(|file| file.is_file()) {
            symlink(found, folder.path().join(name)).unwrap();
        }
    }
    for name in programs.iter().chain(&["id"]) {
        stand_in(&folder.path().join(name));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/setup");
    let output = Command::new(script)
        .arg(group)
        .env("PATH", folder.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

/// A program that prints the number of a user who is not root.
fn stand_in(file: &Path) {
    fs::write(file, "#!/bin/sh\necho 1000\n").unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn setup_without_an_optional_program_says_so_and_succeeds() {
    let (code, said) = setup("fleet", &[], &[("HYPERFLEET_ETCD", "/nowhere/etcd")]);
    assert!(said.contains("setup: missing: etcd"), "{said}");
    assert!(said.contains("sudo apt-get install etcd-server"), "{said}");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn setup_without_an_essential_program_names_its_package() {
    let (code, said) = setup("demo", &["curl"], &[]);
    let words = "- curl and jq, for demos: sudo apt-get install curl jq";
    assert!(said.contains(words), "{said}");
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = setup("demo", &["curl", "jq"], &[]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn setup_of_run_asks_for_nothing_that_only_tests_need() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = [("HYPERFLEET_PG_BINDIR", folder.path().to_str().unwrap())];
    let (code, said) = setup("run", &["cc"], &postgres);
    assert!(said.contains("PostgreSQL") && code == Some(1), "{said}");
    stand_in(&folder.path().join("initdb"));
    let (code, said) = setup("run", &["cc"], &postgres);
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn setup_names_what_clients_and_fuzzing_lack() {
    let (code, said) = setup("clients", &["go", "javac"], &[]);
    for words in [
        "missing: Maven and a JDK",
        "sudo apt-get install maven default-jdk-headless",
        "Node.js 20 or newer is missing",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("Go 1.25"), "{said}");
    assert_eq!(code, Some(0), "{said}");
    let all = ["go", "javac", "mvn", "node", "npm"];
    assert_eq!(setup("clients", &all, &[]), (Some(0), String::new()));
    let (code, said) = setup("fuzz", &[], &[]);
    assert!(
        said.contains("sudo apt-get install python3 python3-venv"),
        "{said}"
    );
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(setup("fuzz", &["python3"], &[]), (Some(0), String::new()));
}

#[test]
fn setup_lists_its_groups() {
    let (code, said) = setup("everything", &[], &[]);
    assert_eq!(code, Some(2));
    for group in [
        "run",
        "demo",
        "fleet",
        "test",
        "bench",
        "containers",
        "kubernetes",
        "clients",
        "fuzz",
        "lint",
        "all",
    ] {
        let begins = |line: &&str| line.split_whitespace().next() == Some(group);
        assert!(
            said.lines().any(|line| begins(&line)),
            "no {group} in: {said}"
        );
    }
}

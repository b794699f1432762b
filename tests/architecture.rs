//! The dependency rule between the layers of one crate, which the compiler does not know.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

use std::fs;
use std::path::{Path, PathBuf};

struct Layer {
    name: &'static str,
    /// Other layers that it may name as `crate::…`.
    may: &'static [&'static str],
    /// Words that must not stand in its code.
    never: &'static [&'static str],
}

const SERVER: &[&str] = &["sqlx", "actix", "tokio"];

/// What is not listed is forbidden: see docs/ARCHITECTURE.md.
#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    Layer { name: "domain",  may: &[],
            never: &["async ", "tokio", "sqlx", "actix", "utoipa", "deadpool", "Utc::now", "Instant::now", "SystemTime", "now_v7", "std::fs", "std::net", "std::env"] },
    // Names sections of the settings, and the frame of requests.
    Layer { name: "kit",     may: &["config", "http"], never: &["sqlx", "deadpool", "etcd_client"] },
    Layer { name: "storage", may: &["domain"],                     never: &["actix", "utoipa", "Utc::now"] },
    Layer { name: "wire",    may: &["domain", "kit"],                   never: &["async ", "tokio", "sqlx", "actix", "Utc::now"] },
    Layer { name: "app",     may: &["domain", "storage"],          never: &["sqlx", "actix", "utoipa", "deadpool", "Utc::now"] },
    Layer { name: "auth",    may: &["kit"], never: &["sqlx", "deadpool", "actix", "utoipa", "anyhow", "Utc::now"] },
    Layer { name: "http",    may: &["app", "auth", "domain", "fleet", "kit", "wire"], never: &["sqlx", "deadpool", "Utc::now"] },
    Layer { name: "config",  may: &["auth", "domain", "kit"],     never: SERVER },
    Layer { name: "dev",     may: &[],                             never: SERVER },
    Layer { name: "startup", may: &["app", "auth", "config", "dev", "domain", "fleet", "http", "kit", "storage"], never: &["Utc::now"] },
];

#[test]
fn every_folder_is_a_layer() {
    let folders: Vec<_> = fs::read_dir("src")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !path.ends_with("bin"))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .filter(|name| !LAYERS.iter().any(|layer| layer.name == name))
        .collect();
    assert!(folders.is_empty(), "without a rule: {folders:?}");
}

#[test]
fn layers_name_only_what_they_may() {
    let mut broken = Vec::new();
    for layer in LAYERS {
        let files = rust_files(&Path::new("src").join(layer.name));
        // Tests may read files.
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            for (index, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
                for fault in faults(layer, line.split("//").next().unwrap_or_default()) {
                    broken.push(format!("{}:{} names {fault}", file.display(), index + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

fn faults(layer: &Layer, code: &str) -> Vec<String> {
    let mut faults: Vec<_> = layer
        .never
        .iter()
        .filter(|w| code.contains(**w))
        .map(ToString::to_string)
        .collect();
    for rest in code.split("crate::").skip(1) {
        let other = rest
            .split(|c: char| !c.is_ascii_lowercase())
            .next()
            .unwrap_or_default();
        if other != layer.name && !layer.may.contains(&other) {
            faults.push(format!("crate::{other}"));
        }
    }
    faults
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                rust_files(&path)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect()
}

//! `packaging/releases`: which releases there were.

use std::collections::BTreeMap;
use std::fs;

/// One release.
pub(crate) struct Release {
    pub(crate) version: String,
    /// The checksums of the migrations that came with it, by file.
    pub(crate) migrations: BTreeMap<String, String>,
}

/// Releases that differ only in their patches: 0.2.0, 0.2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    major: u32,
    minor: u32,
}

impl Series {
    pub(crate) fn of(version: &str) -> Self {
        let mut parts = version.split('.').map(|part| part.parse().unwrap());
        Self {
            major: parts.next().unwrap(),
            minor: parts.next().unwrap(),
        }
    }
}

/// All of them, oldest first.
pub(crate) fn releases() -> Vec<Release> {
    read(&fs::read_to_string("packaging/releases").unwrap())
}

fn read(text: &str) -> Vec<Release> {
    let mut releases: Vec<Release> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["release", version, commit] => {
                assert_eq!(commit.len(), 40, "{line}");
                releases.push(Release {
                    version: version.to_owned(),
                    migrations: BTreeMap::new(),
                });
            }
            // Databases of earlier releases are not upgraded.
            ["baseline"] => releases.iter_mut().for_each(|r| r.migrations.clear()),
            ["migration", sum, file] => {
                let release = releases
                    .last_mut()
                    .expect("a release before its migrations");
                release.migrations.insert(file.to_owned(), sum.to_owned());
            }
            _ => panic!("neither a release, a migration nor a baseline: {line}"),
        }
    }
    releases
}

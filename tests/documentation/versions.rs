//! Versions in commands are those that a reader can have: of this tree, of its release, or of the release before.

use std::fs;

use crate::{documents, lines};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Programs and objects whose versions are ours.
const OURS: [&str; 5] = [
    "hyperfleet",
    "fleetd",
    "fleetctl",
    "image.tag",
    "HYPERFLEET_IMAGE",
];
/// What stands before versions of other things: of a client, of the chart.
const OTHERS: [&str; 2] = ["curl/", "hyperfleet-api, version: "];
/// Its example is one release, whichever comes next.
const CHECKLIST: &str = "docs/internals/releasing.md";

#[test]
fn versions_in_commands_are_recent() {
    let release = VERSION.trim_end_matches("-dev");
    let allowed = [VERSION, release, &previous_release()].map(str::to_owned);
    let (mut old, mut count) = (Vec::new(), 0);
    for document in documents() {
        if document.ends_with(CHECKLIST) {
            continue;
        }
        let text = fs::read_to_string(&document).unwrap();
        let ours = lines(&text, true).filter(|line| OURS.iter().any(|name| line.contains(name)));
        for version in ours.flat_map(versions) {
            count += 1;
            if !allowed.iter().any(|allowed| allowed == version) {
                old.push(format!("{}: {version}", document.display()));
            }
        }
    }
    assert!(
        old.is_empty(),
        "write one of {allowed:?}:\n{}",
        old.join("\n")
    );
    assert!(count > 5, "it looks at the wrong places: {count}");
}

/// The newest release of the changelog that is not this version.
fn previous_release() -> String {
    let changelog = fs::read_to_string("CHANGELOG.md").unwrap();
    let headings = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## ["));
    let mut versions = headings.filter_map(|heading| heading.split_once("] - "));
    let previous = versions.find(|(version, _)| *version != VERSION);
    previous.unwrap().0.to_owned()
}

/// Texts such as `1.2.3` and `1.2.3-dev`; addresses have four numbers.
fn versions(line: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let is_before = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = &rest[..start];
        let is_other = OTHERS.iter().any(|other| before.ends_with(other));
        let is_begin = !before.ends_with(is_before) && !is_other;
        let text = &rest[start..];
        let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let number = text[..end].trim_end_matches('.');
        let end = if text[end..].starts_with("-dev") {
            end + "-dev".len()
        } else {
            number.len()
        };
        if is_begin && number.split('.').count() == 3 {
            found.push(&text[..end]);
        }
        rest = &text[end.max(1)..];
    }
    found
}

#[test]
fn versions_are_distinguished_from_addresses() {
    let line = "a_0.2.0-1_amd64.deb b:0.1.0 192.0.2.10:80 fleetd/0.2.0-dev v3.4.23 1.25";
    assert_eq!(versions(line), ["0.2.0", "0.1.0", "0.2.0-dev"]);
}

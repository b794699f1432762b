//! Messages that pages quote exist: operators search the log for them.

use std::fs;
use std::path::Path;

use hyperfleet_testkit::files_below;

use crate::{code_spans, joined};

/// Pages for operators. A span of several plain words there is a message, unless it is a command.
const PAGES: [&str; 3] = [
    "docs/operations",
    "docs/reference/metrics.md",
    "docs/guides",
];
/// First words of commands.
const COMMANDS: [&str; 9] = [
    "audit",
    "cargo",
    "docker",
    "etcdctl",
    "fleetctl",
    "helm",
    "hyperfleet-api",
    "systemctl",
    "fleetd",
];
/// Messages of other programs.
const FOREIGN: [&str; 2] = [
    // PgBouncer.
    "unsupported startup parameter",
    // PostgreSQL.
    "recovery ended before configured recovery target was reached",
];

#[test]
fn quoted_messages_exist() {
    let messages = messages();
    let (mut unknown, mut count) = (Vec::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for quoted in code_spans(&text).iter().filter(|span| is_message(span)) {
            count += 1;
            let exists = messages.iter().any(|message| contains(message, quoted));
            if !exists && !FOREIGN.contains(&quoted.as_str()) {
                unknown.push(format!("{}: {quoted}", page.display()));
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "no program says:\n{}",
        unknown.join("\n")
    );
    assert!(count > 30, "it looks at the wrong places: {count}");
}

fn pages() -> Vec<std::path::PathBuf> {
    let pages = PAGES.map(Path::new).into_iter().flat_map(|page| {
        if page.is_dir() {
            files_below(page)
        } else {
            vec![page.to_path_buf()]
        }
    });
    pages.collect()
}

/// Every text between quotation marks in the sources of programs, with an ellipsis for what it inserts.
fn messages() -> Vec<String> {
    let sources = ["src", "crates"].map(Path::new);
    let mut sources = sources
        .into_iter()
        .flat_map(files_below)
        .collect::<Vec<_>>();
    sources.retain(|path| path.extension().is_some_and(|e| e == "rs") && !is_test(path));
    let texts = sources.iter().map(|path| fs::read_to_string(path).unwrap());
    let literals = texts.flat_map(|text| {
        // A backslash at its end joins a line with the next one.
        let text = joined(&text.replace("\\\n", ""));
        text.split('"').map(without_values).collect::<Vec<_>>()
    });
    literals.collect()
}

fn is_test(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.any(|part| part == "tests" || part == "tests.rs" || part == "testkit")
}

/// A message with `…` instead of `{name}`.
fn without_values(message: &str) -> String {
    let mut parts = message.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "…" + part.split_once('}').map_or("", |(_, rest)| rest)
    })
}

/// Three or more plain words, the first in lower case.
fn is_message(span: &str) -> bool {
    let words: Vec<_> = span.split(' ').collect();
    let is_plain = |c: char| c.is_alphabetic() || " ,;:'’…-".contains(c);
    let has_flag = words.iter().any(|word| word.starts_with('-'));
    let is_lower = span.starts_with(|c: char| c.is_lowercase() || c == '…');
    words.len() > 2
        && is_lower
        && span.chars().all(is_plain)
        && !has_flag
        && !COMMANDS.contains(&words[0])
}

/// Whether a message contains a quotation, in which `…` and `N` stand for any text.
fn contains(message: &str, quoted: &str) -> bool {
    let quoted = quoted.replace(" N ", " … ");
    let mut rest = message;
    quoted.split('…').map(str::trim).all(|part| {
        let found = rest.find(part);
        rest = found.map_or("", |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

#[test]
fn a_quotation_may_leave_out_values() {
    let message = without_values("the database lacks {count} migrations: run {command}");
    assert!(contains(&message, "the database lacks N migrations: run …"));
    assert!(contains(&message, "database lacks …"));
    assert!(!contains(&message, "the database has N migrations"));
    assert!(is_message("no list or watch of this instance"));
    assert!(!is_message("systemctl reload fleetd") && !is_message("x --y z"));
}

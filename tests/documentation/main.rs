//! The documentation says what is so: what it names exists, and its numbers, messages and versions are those of the code.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

mod constants;
mod files;
mod links;
mod messages;
mod numbers;
mod quantities;
mod settings;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};

use hyperfleet_testkit::files_below;

/// Every Markdown file for users and developers.
fn documents() -> Vec<PathBuf> {
    let root = fs::read_dir(".")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let all = root.chain(files_below(Path::new("docs")));
    let all = all.chain(files_below(Path::new("tests/fixtures")));
    let all = all.chain(files_below(Path::new("charts")));
    all.filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect()
}

/// The lines of a document inside (`true`) or outside fenced blocks of code.
fn lines(text: &str, is_code: bool) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        !is_fence && is_inside == is_code
    })
}

/// The texts in single backticks of a document, line breaks replaced.
fn code_spans(text: &str) -> Vec<String> {
    let prose: Vec<_> = lines(text, false).collect();
    let prose = prose.join("\n");
    // A span ends in its paragraph, so that a lone backtick spoils no other one.
    let paragraphs = prose.split("\n\n").flat_map(|paragraph| {
        let spans = paragraph.split('`').skip(1).step_by(2);
        spans.map(joined)
    });
    paragraphs.collect()
}

/// The text in one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

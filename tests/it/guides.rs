//! The guides do what they show: their commands are run against a service, one after the other, and print what the page shows
//! below them. Ids, times and durations may differ.

use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::faults::program::Program;
use crate::support::TestDatabase;

const MARK: &str = "=== the next block ===";

/// A block of a page between fences: its language, and its text.
type Block<'a> = (&'a str, &'a str);

/// The blocks of a page, and whether each follows the one before with nothing in between.
fn blocks(page: &str) -> Vec<(Block<'_>, bool)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((before, fenced)) = rest.split_once("```") {
        let (text, after) = fenced.split_once("\n```").expect("an end of the block");
        let block = text.split_once('\n').unwrap_or((text, ""));
        blocks.push((block, before.trim().is_empty()));
        rest = after;
    }
    blocks
}

/// Without what differs from one run to the next.
fn comparable(text: &str) -> String {
    let mut text = text.trim().to_owned();
    for (differs, name) in [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "<id>",
        ),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\(\d+ s", "(<age>"),
        (r"\b\d+\.\d{4,6}\b", "<seconds>"),
    ] {
        text = Regex::new(differs)
            .unwrap()
            .replace_all(&text, name)
            .into_owned();
    }
    text.replace('\r', "")
}

/// The commands of a page with a mark after each block, and what is to be printed up to it, if the page shows that.
fn script<'a>(blocks: &[(Block<'a>, bool)], folder: &Path) -> (String, Vec<Option<&'a str>>) {
    let (mut script, mut expected) = (String::new(), Vec::new());
    for (index, ((language, text), _)) in blocks.iter().enumerate() {
        match *language {
            "sh" => {
                script.extend([text, "\necho '", MARK, "'\n"]);
                let next = blocks.get(index + 1).filter(|(_, is_next)| *is_next);
                let shown = next.filter(|((language, _), _)| matches!(*language, "text" | "json"));
                expected.push(shown.map(|((_, text), _)| *text));
            }
            // Its first line names its file.
            "python" => {
                let name = text.lines().next().unwrap().trim_start_matches("# ");
                std::fs::write(folder.join(name), text).unwrap();
            }
            _ => {}
        }
    }
    (script, expected)
}

/// Runs the commands of a guide.
async fn play(guide: &str) {
    let page = std::fs::read_to_string(format!("docs/guides/{guide}.md")).unwrap();
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let address = program.address("api").await;
    let page = page.replace("127.0.0.1:8000", &address);
    let folder = tempfile::tempdir().unwrap();
    let (script, expected) = script(&blocks(&page), folder.path());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}\n{errors}");
    let printed: Vec<_> = printed.split(&format!("{MARK}\n")).collect();
    assert_eq!(printed.len(), expected.len() + 1, "{printed:?}");
    let mut shown = 0;
    for (printed, expected) in printed.iter().zip(expected) {
        if let Some(expected) = expected {
            assert_eq!(comparable(printed), comparable(expected), "{guide}");
            shown += 1;
        }
    }
    assert!(shown > 0, "{guide} shows no output");
}

#[tokio::test]
async fn what_explain_shows_is_printed() {
    play("explain").await;
}

#[tokio::test]
async fn what_history_shows_is_printed() {
    play("history").await;
}

#[tokio::test]
async fn what_plan_changes_shows_is_printed() {
    play("plan-changes").await;
}

#[tokio::test]
async fn what_python_shows_is_printed() {
    play("python").await;
}

#[tokio::test]
async fn what_safe_changes_shows_is_printed() {
    play("safe-changes").await;
}

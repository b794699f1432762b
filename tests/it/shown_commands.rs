//! The commands of pages of the documentation print what the pages show.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;

use crate::faults::program::{Folder, Program};
use crate::support::TestDatabase;

/// Where the pages call the service.
const DOCUMENTED_ADDRESS: &str = "127.0.0.1:8000";

/// Commands of a page, and what it shows as their output.
struct Step {
    commands: String,
    output: Option<String>,
}

/// Blocks of `sh`, each with the block of `json` or `text` that follows it. Blocks of `python` become files of the folder: their
/// first line has the name. Pictures, and blocks of `shell`, are not run.
fn steps(page: &str, folder: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        match language {
            "sh" => steps.push(Step {
                commands: text.to_owned(),
                output: None,
            }),
            "shell" | "mermaid" => {}
            "python" => {
                let name = text.lines().next().unwrap().strip_prefix("# ").unwrap();
                std::fs::write(folder.join(name), text).unwrap();
            }
            _ => steps.last_mut().unwrap().output = Some(text.to_owned()),
        }
    }
    steps
}

/// Without what differs from run to run: ids, times, ages, durations. jq shows some of these with seventeen digits.
fn comparable(text: &str) -> String {
    static DIFFERING: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
        [
            ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
            ("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "<time>"),
            (r"\([0-9]+ s", "(<age>"),
            (r"\b[0-9]+\.[0-9]{3,}\b", "<seconds>"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
    });
    let text = text.trim().replace('\r', "");
    let replaced = |text: String, (pattern, name): &(Regex, &str)| {
        pattern.replace_all(&text, *name).into_owned()
    };
    DIFFERING.iter().fold(text, replaced)
}

/// Runs the commands of a page against a service, and compares what they print. Returns the number of blocks of commands.
async fn play(page: &str) -> usize {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    play_on(api.address(), &format!("docs/{page}.md"))
}

/// The same with a service that runs.
fn play_on(address: &str, page: &str) -> usize {
    let page = std::fs::read_to_string(page).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let steps = steps(&page.replace(DOCUMENTED_ADDRESS, address), folder.path());
    assert!(
        steps.iter().any(|step| step.output.is_some()),
        "the page shows no output"
    );
    // One shell for all, because later commands use what earlier ones set.
    let commands = steps
        .iter()
        .map(|step| format!("{}\nprintf '\\0'\n", step.commands));
    let script = commands.collect::<String>();
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]);
    shell.current_dir(folder.path()).stdin(Stdio::null());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<_> = printed.split('\0').collect();
    assert_eq!(printed.len(), steps.len() + 1, "{printed:?}");
    for (step, printed) in steps.iter().zip(printed) {
        if let Some(expected) = &step.output {
            assert_eq!(
                comparable(printed),
                comparable(expected),
                "{}",
                step.commands
            );
        }
    }
    steps.len()
}

#[tokio::test]
async fn the_readme_shows_what_the_first_steps_print() {
    let folder = Folder::new();
    let mut program = Program::dev(&folder);
    let api = program.serving(folder.database()).await;
    let steps = play_on(api.address(), "README.md");
    assert_eq!(steps, 4);
}

#[tokio::test]
async fn the_life_of_a_cluster_is_as_the_page_shows() {
    let steps = play("start/life-of-a-cluster").await;
    assert!(steps > 5, "the page has no commands");
}

#[tokio::test]
async fn what_explain_shows_is_printed() {
    play("guides/explain").await;
}

#[tokio::test]
async fn what_history_shows_is_printed() {
    play("guides/history").await;
}

#[tokio::test]
async fn what_plan_changes_shows_is_printed() {
    play("guides/plan-changes").await;
}

#[tokio::test]
async fn what_python_shows_is_printed() {
    play("guides/python").await;
}

#[tokio::test]
async fn what_safe_changes_shows_is_printed() {
    play("guides/safe-changes").await;
}

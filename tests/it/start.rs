//! The commands of the start pages print what the pages show.

use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use hyperfleet_server_kit::clock::Clock;
use regex::Regex;

use crate::support::TestApi;

/// Where the pages call the service.
const SHOWN: &str = "http://127.0.0.1:8000";

/// Commands of a page, and what it shows as their output.
struct Step {
    commands: String,
    output: Option<String>,
}

/// Blocks of `sh`, each with the block of `json` or `text` that follows it.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        if language == "sh" {
            steps.push(Step {
                commands: text.to_owned(),
                output: None,
            });
        } else {
            steps.last_mut().unwrap().output = Some(text.to_owned());
        }
    }
    steps
}

/// Without what differs from run to run.
fn comparable(text: &str) -> String {
    static ID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap());
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z").unwrap());
    let text = ID.replace_all(text.trim(), "<id>");
    TIME.replace_all(&text, "<time>").into_owned()
}

/// A report counts as new only at a later time than the one before it.
async fn with_running_clock<T>(api: &TestApi, work: impl Future<Output = T>) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => api.clock.set(Clock::system().now()),
        }
    }
}

#[tokio::test]
async fn the_life_of_a_cluster_is_as_the_page_shows() {
    let page = std::fs::read_to_string("docs/start/life-of-a-cluster.md").unwrap();
    let steps = steps(&page);
    assert!(steps.len() > 5, "the page has no commands");
    let api = TestApi::spawn().await;
    let host = api.base.split("/api/").next().unwrap();
    // One shell for all, because later commands use what earlier ones set.
    let commands = steps
        .iter()
        .map(|step| format!("{}\nprintf '\\0'\n", step.commands));
    let script = commands.collect::<String>().replace(SHOWN, host);
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]);
    shell.current_dir(folder.path()).stdin(Stdio::null());
    let shell = tokio::task::spawn_blocking(move || shell.output());
    let output = with_running_clock(&api, shell).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    for (step, printed) in steps.iter().zip(printed.split('\0')) {
        if let Some(shown) = &step.output {
            assert_eq!(comparable(printed), comparable(shown), "{}", step.commands);
        }
    }
}

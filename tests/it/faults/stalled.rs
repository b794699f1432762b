//! A log that nobody reads: the service continues, and reports the missing lines once they are read again.
#![allow(clippy::float_cmp, reason = "what is counted is whole")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{TestApi, TestDatabase, sum, until};

const DROPPED: &str = "hyperfleet_api_log_lines_dropped_total";

/// The real program, whose log is read when the test says so.
struct Unread {
    child: Child,
    log: BufReader<ChildStdout>,
    api: TestApi,
    metrics: String,
}

impl Unread {
    /// Reads until it serves, and no further.
    async fn serve() -> Self {
        let database = TestDatabase::create().await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
        command.args(["serve", "--database-url", &database.url()]);
        command.args(["--server-port=0", "--health-port=0", "--metrics-port=0"]);
        command.args(["--server-jwt-enabled=false"]);
        command.env("HYPERFLEET_HEALTH_SHUTDOWN_DELAY", "0s");
        command.current_dir("/").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut metrics = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "it does not serve");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["message"] == "listening" {
                metrics = format!("http://{}/metrics", line["metrics"].as_str().unwrap());
            } else if line["message"] == "serving" {
                break line["address"].as_str().unwrap().to_owned();
            }
        };
        let api = TestApi::remote(&format!("http://{address}/api/hyperfleet/v1"), database);
        Self {
            child,
            log,
            api,
            metrics,
        }
    }

    /// Sends requests that lead nowhere, whose lines are long, until lines are dropped. Gives how
    /// many requests those were.
    async fn fill(&self) -> usize {
        let mut sent = 0;
        while self.dropped().await == 0.0 {
            for _ in 0..100 {
                let request = self.api.client.get(format!("{}/nowhere", self.api.base));
                let request = request.header("user-agent", "x".repeat(4000));
                let answer = request.timeout(Duration::from_secs(10)).send().await;
                assert_eq!(answer.unwrap().status(), 404);
                sent += 1;
            }
            assert!(sent < 10_000, "nothing is ever dropped");
        }
        sent
    }

    async fn dropped(&self) -> f64 {
        let answer = self.api.client.get(&self.metrics).send().await.unwrap();
        sum(&answer.text().await.unwrap(), DROPPED, &[])
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits for its end without reading; gives its exit code.
    async fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        until("it ends", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code()
    }

    /// The rest of the log.
    fn rest(&mut self) -> Vec<Value> {
        let mut text = String::new();
        self.log.read_to_string(&mut text).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines
        .iter()
        .filter(|line| line["message"] == message)
        .collect()
}

#[tokio::test]
async fn requests_go_on_while_the_log_stalls_and_losses_are_logged() {
    let mut program = Unread::serve().await;
    let mut sent = program.fill().await;
    let since = Instant::now();
    let cluster = program.api.cluster("abc").await;
    for _ in 0..20 {
        assert_eq!(program.api.get(&cluster).await.status, 200);
    }
    sent += 21;
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
    let dropped = program.dropped().await;
    assert!(dropped >= 21.0, "{dropped}");

    // Read until the missing lines are reported; later events are in the log again.
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(program.log.read_line(&mut line).unwrap() > 0, "it ended");
        let line: Value = serde_json::from_str(&line).unwrap();
        let message = line["message"].as_str().unwrap();
        let is_told = message.starts_with("log lines missing");
        lines.push(line.clone());
        if is_told {
            assert_eq!(line["level"], "error");
            assert_eq!(line["lines"].as_f64(), Some(dropped), "{line}");
            break;
        }
    }
    assert_eq!(program.api.get(&cluster).await.status, 200);
    assert_eq!(program.dropped().await, dropped);
    program.signal(Signal::TERM);
    lines.extend(program.rest());
    assert_eq!(program.ended().await, Some(0));
    let answered = with(&lines, "answered").len();
    #[expect(clippy::cast_precision_loss, reason = "these are few")]
    {
        assert_eq!(
            answered as f64 + dropped,
            (sent + 1) as f64,
            "each is there, or counted"
        );
    }
    let last = lines.last().unwrap();
    assert_eq!(last["message"], "stopped: all requests completed");
}

#[tokio::test]
async fn an_unread_log_does_not_delay_the_exit() {
    // Two of one sort at once may come as one.
    for (signals, code) in [(&[Signal::TERM][..], 0), (&[Signal::TERM, Signal::INT], 1)] {
        let mut program = Unread::serve().await;
        program.fill().await;
        let since = Instant::now();
        for signal in signals {
            program.signal(*signal);
        }
        assert_eq!(program.ended().await, Some(code));
        assert!(
            since.elapsed() < Duration::from_secs(15),
            "{:?}",
            since.elapsed()
        );
    }
}

#[tokio::test]
async fn why_it_ended_is_not_lost_in_a_full_queue_once_somebody_reads() {
    let mut program = Unread::serve().await;
    program.fill().await;
    program.signal(Signal::TERM);
    program.signal(Signal::INT);
    let lines = program.rest();
    assert_eq!(program.ended().await, Some(1));
    assert!(lines.len() > 100, "{}", lines.len());
    let last = lines.last().unwrap();
    assert_eq!(last["message"], "stopped immediately: second signal");
}

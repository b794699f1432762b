//! Followers of a busy unit's journal, and cleanup after they, or a fleetd, are killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hyperfleet_testkit::{PrivateMachine, until};
use reqwest::{Method, Response};

use super::cluster::Cluster;
use super::command_line::program;

/// Lines that a busy unit logs, and how many of them at a time, ten times a second.
const LINES: usize = 50_000;
const LINES_AT_ONCE: usize = 500;
/// Longest delay of a follower at the end, on a machine busy with other tests.
const LAG_MAX: Duration = Duration::from_mins(1);
/// Additional memory of fleetd for a follower of a busy unit, in KiB.
const MEMORY_KIB_MAX: usize = 16 << 10;

/// fleetctl that follows a journal.
pub(super) struct Follower {
    child: Child,
    file: PathBuf,
}

impl Follower {
    pub(super) fn start(endpoint: &str, lines: &str, unit: &str, folder: &Path) -> Self {
        let file = folder.join(format!("{unit}-{lines}"));
        let output = File::create(&file).unwrap();
        let mut command = Command::new(program());
        command.env_clear().stdin(Stdio::null());
        command.env("FLEETCTL_ENDPOINT", endpoint);
        command.args(["journal", "-f", "--output=cat", "--lines", lines, unit]);
        let child = command.stdout(output).spawn().unwrap();
        Self { child, file }
    }

    pub(super) fn printed(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let printed = self.printed();
            let last = &printed[printed.len().saturating_sub(700)..];
            println!("fleetctl has printed {} lines: {last:?}", printed.len());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Logs `ready`, waits for a file, and logs its lines.
fn busy() -> String {
    format!(
        "Service ExecStart=/bin/sh -c 'sleep 1; echo ready; until [ -e /run/go ]; do sleep 0.1; done; n=0; \
         while [ $$n -lt {LINES} ]; do seq -f \"line %%.0f of a unit that has much to say, and says it\" $$((n+1)) \
         $$((n+{LINES_AT_ONCE})); n=$$((n+{LINES_AT_ONCE})); sleep 0.1; done; echo end; touch /run/ended; exec sleep 1000'"
    )
}

/// The most memory that fleetd has taken on a machine, in KiB.
fn memory_max(machine: &PrivateMachine) -> usize {
    let pid = machine.property("fleetd.service", "MainPID");
    let output = machine.run(&["grep", "VmHWM", &format!("/proc/{pid}/status")]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// How many `journalctl` run on a machine.
fn journalctls(machine: &PrivateMachine) -> usize {
    let output = machine.run(&["pgrep", "--count", "--exact", "journalctl"]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().parse().unwrap()
}

async fn until_journalctls(machine: &PrivateMachine, count: usize, when: &str) {
    let since = Instant::now();
    until(&format!("{count} journalctl run: {when}"), async || {
        journalctls(machine) == count
    })
    .await;
    println!("{when}: {count} journalctl run after {:?}", since.elapsed());
}

/// Launches a unit on the first machine, and waits until it has logged `ready`.
async fn launch(cluster: &Cluster, unit: &str, lines: &[&str]) {
    let place = "X-Fleet MachineMetadata=host=m1";
    let lines = [lines, &[place]].concat();
    cluster.api().put(unit, &lines, "launched").await;
    cluster.until_active_on(unit).await;
    until("the journal begins", async || {
        let path = format!("/fleet/v1/units/{unit}/journal");
        let answer = cluster.api().request(Method::GET, &path).await;
        answer.text().await.unwrap().contains("\"ready\"")
    })
    .await;
}

fn endpoint(machine: &PrivateMachine) -> String {
    format!("unix://{}", machine.socket().display())
}

#[tokio::test]
async fn a_follower_of_a_busy_unit_does_not_fall_behind() {
    let Some(cluster) = Cluster::boot_with_peers(2).await else {
        return;
    };
    let [first, second] = &cluster.machines[..] else {
        panic!("two machines");
    };
    let folder = tempfile::tempdir().unwrap();
    let unit = "busy.service";
    // An interval of 0 counts as unset.
    let lines = [
        &busy(),
        "Service LogRateLimitIntervalSec=1s",
        "Service LogRateLimitBurst=1000000",
    ];
    launch(&cluster, unit, &lines).await;
    // One asks the unit's machine, the other a different one.
    let followers = [first, second].map(|machine| {
        let folder = folder.path().join(&machine.id);
        std::fs::create_dir(&folder).unwrap();
        let follower = Follower::start(&endpoint(machine), "1", unit, &folder);
        (machine, memory_max(machine), follower)
    });
    for (_, _, follower) in &followers {
        until("it follows", async || follower.printed() == ["ready"]).await;
    }
    first.run(&["touch", "/run/go"]);
    let begun_at = Instant::now();
    until("the unit has logged all", async || {
        first.file("/run/ended").exists()
    })
    .await;
    let (ended_at, took) = (Instant::now(), begun_at.elapsed());
    let mut expected = vec!["ready".to_owned()];
    let text = |n| format!("line {n} of a unit that has much to say, and says it");
    expected.extend((1..=LINES).map(text));
    expected.push("end".to_owned());
    for (machine, before, follower) in &followers {
        until("all is printed", async || {
            follower.printed().last().is_some_and(|line| line == "end")
        })
        .await;
        let lag = ended_at.elapsed();
        let more = memory_max(machine).saturating_sub(*before);
        println!("{LINES} lines in {took:?}; {lag:?} behind at the end, {more} KiB more");
        assert!(follower.printed() == expected, "lines are lost or repeated");
        assert!(lag < LAG_MAX, "{lag:?} behind");
        assert!(more < MEMORY_KIB_MAX, "{more} KiB");
    }
    drop(followers);
    until_journalctls(first, 0, "fleetctl was killed").await;
    cluster.destroy(&[unit]).await;
    cluster.until_empty().await;
}

async fn follow(machine: &PrivateMachine, unit: &str) -> Response {
    let path = format!("/fleet/v1/units/{unit}/journal?lines=1&watch=true");
    let answer = Cluster::api_of(machine).request(Method::GET, &path).await;
    assert_eq!(answer.status().as_u16(), 200);
    answer
}

#[tokio::test]
async fn nothing_is_left_running_when_a_client_or_a_fleetd_is_killed() {
    let Some(cluster) = Cluster::boot_with_peers(2).await else {
        return;
    };
    let [first, second] = &cluster.machines[..] else {
        panic!("two machines");
    };
    let unit = "silent.service";
    let silent = ["Service ExecStart=/bin/sh -c 'sleep 1; echo ready; exec sleep 1000'"];
    launch(&cluster, unit, &silent).await;
    for (name, machine) in [("its own machine", first), ("another machine", second)] {
        let stream = follow(machine, unit).await;
        until_journalctls(first, 1, name).await;
        drop(stream);
        until_journalctls(first, 0, "the client is gone").await;
        let stream = follow(machine, unit).await;
        until_journalctls(first, 1, name).await;
        machine.systemctl(&["kill", "--signal=KILL", "--kill-who=main", "fleetd.service"]);
        until_journalctls(first, 0, "fleetd was killed").await;
        drop(stream);
        until("fleetd is there again", async || {
            let api = Cluster::api_of(machine);
            let answer = api.request(Method::GET, "/fleet/v1/machines").await;
            answer.status().is_success()
        })
        .await;
    }
    cluster.destroy(&[unit]).await;
    cluster.until_empty().await;
}

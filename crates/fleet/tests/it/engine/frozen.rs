//! A leader whose whole process is frozen for longer than its lease, and thawed: this program, started again.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys::Revision;
use hyperfleet_fleet::registry::{KeyChange, Prefix, Record, Registry, WatchScope, WatchUpdate};
use rustix::process::{Pid, Signal, kill_process};

use super::{World, settings};
use hyperfleet_testkit::{PATIENCE, etcd_settings, run_engine, shared_etcd_url, until};

const CHILD: &str = "engine::frozen::child";
const URL: &str = "HYPERFLEET_TEST_ENGINE_ETCD";
const PREFIX: &str = "HYPERFLEET_TEST_ENGINE_PREFIX";

#[tokio::test]
#[ignore = "the other test starts it, in a process of its own"]
async fn child() {
    let (Ok(url), Ok(prefix)) = (std::env::var(URL), std::env::var(PREFIX)) else {
        return;
    };
    let store = EtcdKeys::connect(etcd_settings(&url)).await.unwrap();
    let registry = Registry::new(store, Prefix::new(&prefix).unwrap());
    // Until the parent closes the pipe.
    let unwanted = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let until = async {
        let _ = unwanted.await;
    };
    run_engine(registry, settings("frozen", 3), until).await;
}

struct Running(Child);

impl Running {
    fn start(url: &str, prefix: &str) -> Self {
        // If this thread ends first, the child ends too, even if it is frozen.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", CHILD, "--ignored", "--nocapture"]);
        command
            .env(URL, url)
            .env(PREFIX, prefix)
            .stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_leader_that_was_frozen_changes_nothing_and_stands_by() {
    let url = shared_etcd_url().await;
    let world = World::new(EtcdKeys::connect(etcd_settings(&url)).await.unwrap());
    world.machine("m1", &[]).await;
    let frozen = Running::start(&url, world.prefix());
    world.until_led_by("frozen").await;
    world.launch("first.service", &[]).await;
    world.until_placed(&[("first.service", "m1")]).await;
    let before = world.snapshot().await.revision;
    let (_, term) = world.leader().await.unwrap();
    // It is frozen in the middle of placing these.
    let lines: Vec<_> = (0..400).map(|n| format!("u{n}.service")).collect();
    for name in &lines {
        world.launch(name, &["MachineMetadata=zone=east"]).await;
    }
    world.machine("m2", &[("zone", "east")]).await;
    until("it has begun", async || world.places().await.len() > 1).await;
    frozen.signal(Signal::STOP);
    let placed_then = world.places().await.len();
    println!("frozen with {placed_then} of 401 placed");

    until("its term has ended", async || {
        world.leader().await.is_none()
    })
    .await;
    let second = world.engine("m1");
    world.until_led_by("m1").await;
    // The units that it was about to place are placed elsewhere by another engine.
    let east = |zone: Option<&str>| [("zone".to_owned(), zone.map(str::to_owned))].into();
    world.machine("m3", &[("zone", "east")]).await;
    world.registry.set_labels("m2", &east(None)).await.unwrap();
    until("all are on the other machine", async || {
        let places = world.places().await;
        places.len() == 401 && places.values().all(|machine| machine != "m2")
    })
    .await;
    let leader = world.leader().await;
    frozen.signal(Signal::CONT);
    // Longer than its lease: time enough to do what it was about to do, and to notice.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(world.leader().await, leader);
    let places = world.places().await;
    assert!(places.values().all(|machine| machine != "m2"), "{places:?}");
    every_placement_is_of_the_term_it_was_made_in(&world, before, term).await;

    // It stands by. Once no engine leads, it leads again, in a term of its own.
    second.stop().await;
    world.until_led_by("frozen").await;
    world.launch("last.service", &[]).await;
    until("it decides", async || {
        world.places().await.contains_key("last.service")
    })
    .await;
}

async fn every_placement_is_of_the_term_it_was_made_in(
    world: &World<EtcdKeys>,
    after: Revision,
    mut term: Revision,
) {
    let until = world.launch("mark.service", &["MachineID=none"]).await;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, after)
        .unwrap();
    let (mut placements, mut terms, mut seen) = (0, 0, after);
    while seen < until {
        let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        let Ok(WatchUpdate::Changes { revision, changes }) = told else {
            panic!("{told:?}");
        };
        seen = revision;
        for change in changes {
            match change {
                KeyChange::Leader(Record::Present(leader)) => {
                    term = leader.created;
                    terms += 1;
                }
                KeyChange::Placement(unit, Record::Present(place)) => {
                    assert_eq!(place.value.epoch, term, "{unit}");
                    placements += 1;
                }
                _ => {}
            }
        }
    }
    assert!(placements >= 400 && terms == 1, "{placements} {terms}");
}

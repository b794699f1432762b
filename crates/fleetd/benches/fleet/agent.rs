//! The cost of an idle machine: one fleetd with default settings, on a real systemd.

use std::path::Path;
use std::time::Duration;

use hyperfleet_fleet::registry::{Prefix, Registry};
use hyperfleet_testkit::PrivateSystemd;
use tokio::time::sleep;

use super::connect;
use super::figures::{Figures, print_row, print_title};
use super::processes::{Etcd, Fleetd};

const UNITS: usize = 100;
/// Targets for a machine with this many units.
const PROCESSOR_PERCENT_MAX: f64 = 1.0;
const MEMORY_MB_MAX: f64 = 30.0;

/// A leading engine, the API and the agent in one process, with running units.
pub(crate) async fn idle_agent(seconds: u64, figures: &mut Figures) {
    print_title(&format!(
        "one machine with {UNITS} units on a real systemd, idle for {seconds} s"
    ));
    let Some(systemd) = PrivateSystemd::start().await else {
        print_row("skipped", "no systemd can run here");
        return;
    };
    let etcd = Etcd::start().await;
    let registry = Registry::new(connect(&etcd), Prefix::default());
    let program = Path::new(env!("CARGO_BIN_EXE_fleetd"));
    let fleetd = Fleetd::start_on(&etcd, &systemd, program, true).await;
    for number in 0..UNITS {
        fleetd.launch(&format!("unit-{number:03}.service")).await;
    }
    loop {
        let states = registry.snapshot().await.expect("etcd answers").states;
        let active = states
            .values()
            .filter(|state| state.value.active == "active");
        if active.count() == UNITS {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(5)).await;
    let revision = async || registry.newest().await.expect("etcd answers");
    let before = (revision().await, fleetd.process.processor());
    sleep(Duration::from_secs(seconds)).await;
    let after = (revision().await, fleetd.process.processor());
    #[expect(clippy::cast_precision_loss, reason = "seconds are few")]
    let share = 100.0 * (after.1 - before.1) / seconds as f64;
    let memory = fleetd.process.memory();
    print_row("revisions of etcd", &(after.0 - before.0).to_string());
    print_row("processor: fleetd", &format!("{share:.2} %"));
    print_row("memory: fleetd", &format!("{memory:.0} MB"));
    let is_frugal = share < PROCESSOR_PERCENT_MAX && memory < MEMORY_MB_MAX;
    figures.aim("an idle machine below 1 % of a core and 30 MB", is_frugal);
    figures.aim("an idle machine writes nothing", after.0 == before.0);
}

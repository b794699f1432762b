//! How long fleetctl takes from its start to its end, beside a program that does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Scene;
use super::figures::{Figures, milliseconds, print_row, print_times_of, print_title};

/// Starts of each kind.
const STARTS: usize = 50;
/// What fleetctl may take beyond the start of a program that does nothing.
const START_MAX: Duration = Duration::from_millis(10);
/// A program that does nothing.
const NOTHING: &str = "/bin/true";

/// Starts of fleetctl while there are no units: without a request, and with those of a list.
pub(crate) fn starts(scene: &Scene, figures: &mut Figures) {
    print_title(&format!("fleetctl, {STARTS} starts each"));
    let nothing = print_starts(NOTHING, || Command::new(NOTHING));
    for command in ["version", "list-units"] {
        let what = format!("fleetctl {command}");
        let half = print_starts(&what, || fleetctl(scene, command));
        let beyond = half.saturating_sub(nothing);
        let figure = format!("p50 {:.1} ms", milliseconds(beyond));
        print_row(&format!("{what} beyond {NOTHING}"), &figure);
        let aim = format!("p50 of {what} below 10 ms beyond {NOTHING}");
        figures.aim(&aim, beyond < START_MAX);
    }
}

/// The list of all units.
pub(crate) fn whole_list(scene: &Scene) {
    print_title(&format!("fleetctl, {STARTS} lists of all units"));
    print_starts("fleetctl list-units", || fleetctl(scene, "list-units"));
}

/// Half of the times of some runs.
fn print_starts(what: &str, command: impl Fn() -> Command) -> Duration {
    let run = || {
        let mut command = command();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let begun = Instant::now();
        let status = command.status().expect("it can be started");
        assert!(status.success(), "{what}: {status}");
        begun.elapsed()
    };
    let mut times: Vec<_> = (0..STARTS).map(|_| run()).collect();
    let (half, _) = print_times_of(what, &mut times);
    half
}

/// fleetctl on the socket of the fleetd that leads.
fn fleetctl(scene: &Scene, command: &str) -> Command {
    let mut fleetctl = Command::new(program());
    let socket = scene.fleetds[0].socket.display();
    fleetctl.env_clear().arg(command);
    fleetctl.env("FLEETCTL_ENDPOINT", format!("unix://{socket}"));
    fleetctl
}

/// The release build, beside that of fleetd; `make bench-fleet` makes it.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_fleetd")).with_file_name("fleetctl");
    assert!(
        program.exists(),
        "{} is missing: cargo build --release --bin fleetctl",
        program.display()
    );
    program
}

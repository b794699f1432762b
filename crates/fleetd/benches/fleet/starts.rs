//! The run time of fleetctl compared with a program that does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Scene;
use super::figures::{Figures, milliseconds, print_row, print_times_of, print_title};

const STARTS: usize = 50;
/// Most additional time of fleetctl.
const START_MAX: Duration = Duration::from_millis(10);
const NOTHING: &str = "/bin/true";

/// Runs of fleetctl without units: without a request, and with the requests of a list.
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

pub(crate) fn whole_list(scene: &Scene) {
    print_title(&format!("fleetctl, {STARTS} lists of all units"));
    print_starts("fleetctl list-units", || fleetctl(scene, "list-units"));
}

/// The median of some runs.
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

/// fleetctl on the socket of the leading fleetd.
fn fleetctl(scene: &Scene, command: &str) -> Command {
    let mut fleetctl = Command::new(program());
    let socket = scene.fleetds[0].socket.display();
    fleetctl.env_clear().arg(command);
    fleetctl.env("FLEETCTL_ENDPOINT", format!("unix://{socket}"));
    fleetctl
}

/// The release build beside fleetd's; `make bench-fleet` builds it.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_fleetd")).with_file_name("fleetctl");
    assert!(
        program.exists(),
        "{} is missing: cargo build --release --bin fleetctl",
        program.display()
    );
    program
}

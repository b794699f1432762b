//! Machines with a systemd of their own, which share the network of this one: for tests of the programs as they are
//! installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::systemd::{Ended, hand_over, private_systemd};
use super::{RunningProgram, until};

/// What a machine boots: little, and fleetd.
const TARGET: &str = "[Unit]
Requires=dbus.socket basic.target
After=dbus.socket basic.target
Wants=fleetd.service
AllowIsolate=yes
";

/// A machine that runs fleetd as a service. Dropped, it dies at once, with all that it runs.
pub struct PrivateMachine {
    program: RunningProgram,
    /// Its first process.
    init: String,
    pub id: String,
    _folder: TempDir,
}

impl PrivateMachine {
    /// Boots a machine of that number. `fleetd` is the program, `services` the folder of its units, as they are installed.
    /// `None` where no machine can be booted: the test is skipped then, and says why, unless `SYSTEMD_REQUIRED` is set.
    pub async fn boot(
        number: u32,
        fleetd: &Path,
        services: &Path,
        settings: &[(&str, &str)],
    ) -> Option<Self> {
        let folder = tempfile::Builder::new()
            .prefix("hyperfleet-machine-")
            .tempdir()
            .unwrap();
        let (bin, units) = (folder.path().join("bin"), folder.path().join("units"));
        std::fs::create_dir(&bin).unwrap();
        hand_over(fleetd, &bin.join("fleetd"));
        std::fs::create_dir_all(units.join("fleetd.service.d")).unwrap();
        std::fs::write(units.join("test.target"), TARGET).unwrap();
        for file in ["fleetd.service", "fleetd.socket"] {
            std::fs::copy(services.join(file), units.join(file)).unwrap();
        }
        let settings = settings.iter();
        let settings = settings.map(|(key, value)| format!("Environment=FLEET_{key}={value}\n"));
        let settings: String = settings.collect();
        let local = format!("[Service]\nExecStart=\nExecStart=/opt/fleetd\n{settings}");
        std::fs::write(units.join("fleetd.service.d/test.conf"), local).unwrap();
        let id = format!("{number:032x}");
        let name = format!("m{number}");
        let mut program = private_systemd(&["machine"], folder.path(), &[&name, &id]);
        let mut init = String::new();
        let booted = Ended::or(&mut program, |program| {
            let said = program.output();
            let line = said.lines().find_map(|line| line.strip_prefix("init "));
            line.is_some_and(|pid| {
                pid.clone_into(&mut init);
                true
            })
        });
        booted.await.then_some(())?;
        let machine = Self {
            program,
            init,
            id,
            _folder: folder,
        };
        until("the machine has booted", async || machine.socket().exists()).await;
        Some(machine)
    }

    /// Where fleetd's API is.
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/run/fleet.sock", self.init))
    }

    /// Runs a program there.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.init, "-m", "-p", "-u", "-i", "--"]);
        let command = command.args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// A property of a unit, as its systemd knows it.
    pub fn property(&self, unit: &str, name: &str) -> String {
        let output = self.run(&["systemctl", "show", "--value", "--property", name, unit]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What fleetd has logged.
    pub fn log(&self) -> String {
        let output = self.run(&["journalctl", "--unit", "fleetd", "--no-pager"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for PrivateMachine {
    fn drop(&mut self) {
        Ended::wait(&mut self.program);
    }
}

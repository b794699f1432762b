//! Machines with their own systemd, for tests of the installed programs. They share the network of this
//! machine, or have links to a [`PrivateNetwork`].

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::systemd::{Ended, hand_over, private_systemd};
use super::{PrivateNetwork, RunningProgram, until};

/// The boot target of a machine: the minimum, and fleetd.
const TARGET: &str = "[Unit]
Requires=dbus.socket basic.target
After=dbus.socket basic.target
Wants=fleetd.service
AllowIsolate=yes
";

pub struct MachineSetup<'a> {
    /// Distinguishes the machines of a test.
    pub number: u32,
    pub id: String,
    pub fleetd: &'a Path,
    /// Folder of fleetd's systemd units, as installed.
    pub services: &'a Path,
    pub settings: &'a [(&'a str, &'a str)],
    /// Further files, by path: below `bin` they are in `/opt`, below `units` in `/etc/systemd/system`.
    pub files: &'a [(String, String)],
    /// `None`: that of this machine.
    pub network: Option<&'a PrivateNetwork>,
}

/// A machine that runs fleetd as a service. Dropped, it dies at once with all its processes.
pub struct PrivateMachine {
    pub number: u32,
    pub id: String,
    folder: TempDir,
    /// Arguments of `scripts/private-systemd`.
    arguments: Vec<String>,
    /// `None` while it is dead.
    running: Option<Running>,
}

struct Running {
    program: RunningProgram,
    /// Its first process.
    init: String,
}

impl PrivateMachine {
    /// The id of the machine with a number.
    pub fn id_of(number: u32) -> String {
        format!("{number:032x}")
    }

    /// Boots a machine. `None` if that is impossible here: the test is skipped then, with a message, unless
    /// `SYSTEMD_REQUIRED` is set.
    pub async fn boot(setup: &MachineSetup<'_>) -> Option<Self> {
        let folder = tempfile::Builder::new()
            .prefix("hyperfleet-machine-")
            .tempdir()
            .unwrap();
        let (bin, units) = (folder.path().join("bin"), folder.path().join("units"));
        std::fs::create_dir(&bin).unwrap();
        hand_over(setup.fleetd, &bin.join("fleetd"));
        std::fs::create_dir_all(units.join("fleetd.service.d")).unwrap();
        std::fs::write(units.join("test.target"), TARGET).unwrap();
        for file in ["fleetd.service", "fleetd.socket"] {
            std::fs::copy(setup.services.join(file), units.join(file)).unwrap();
        }
        for (path, text) in setup.files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut arguments = vec!["machine".to_owned(), folder.path().display().to_string()];
        arguments.extend([format!("m{}", setup.number), setup.id.clone()]);
        if let Some(network) = setup.network {
            let address = PrivateNetwork::machine_address(setup.number);
            arguments.extend([network.process().to_owned(), address]);
        }
        let mut machine = Self {
            number: setup.number,
            id: setup.id.clone(),
            folder,
            arguments,
            running: None,
        };
        machine.write_settings(setup.settings);
        machine.start().await.then_some(machine)
    }

    /// Writes the settings that fleetd uses after the next `systemctl daemon-reload`.
    fn write_settings(&self, settings: &[(&str, &str)]) {
        let settings = settings.iter();
        let settings = settings.map(|(key, value)| format!("Environment=FLEET_{key}={value}\n"));
        let settings: String = settings.collect();
        let local = format!("[Service]\nExecStart=\nExecStart=/opt/fleetd\n{settings}");
        let file = self.folder.path().join("units/fleetd.service.d/test.conf");
        std::fs::write(file, local).unwrap();
    }

    /// Whether it has booted; false if that is impossible here.
    async fn start(&mut self) -> bool {
        let arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
        let mut program = private_systemd(&arguments);
        let Some(init) = Ended::or_line(&mut program, "init ").await else {
            return false;
        };
        self.running = Some(Running { program, init });
        until("the machine has booted", async || self.socket().exists()).await;
        true
    }

    /// Kills it, as a loss of power would.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            Ended::wait(&mut running.program);
        }
    }

    /// Turns it off gracefully, and waits until it is off.
    pub async fn power_off(&mut self) {
        self.systemctl(&["poweroff"]);
        let mut running = self.running.take().expect("a machine that runs");
        running.program.ended().await;
    }

    /// Boots it after [`kill`](Self::kill) or [`power_off`](Self::power_off). Its memory and `/run` are lost.
    pub async fn boot_again(&mut self) {
        assert!(self.running.is_none(), "it runs");
        assert!(self.start().await, "it has booted before");
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Replaces the program fleetd, as an upgrade does.
    pub fn replace_program(&self, fleetd: &Path) {
        let bin = self.folder.path().join("bin");
        let new = bin.join("fleetd.new");
        std::fs::copy(fleetd, &new).unwrap();
        std::fs::rename(new, bin.join("fleetd")).unwrap();
    }

    /// Writes a file to `/etc/systemd/system`, where the machine itself cannot write.
    pub fn write_unit(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("units").join(name), text).unwrap();
    }

    /// The path of a machine's file on this machine.
    pub fn file(&self, path: &str) -> PathBuf {
        let init = self.running.as_ref().map(|running| running.init.as_str());
        PathBuf::from(format!("/proc/{}/root{path}", init.unwrap_or("none")))
    }

    /// The socket of fleetd's API.
    pub fn socket(&self) -> PathBuf {
        self.file("/run/fleet.sock")
    }

    /// Runs a program there.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let running = self.running.as_ref().expect("a machine that runs");
        let mut command = Command::new("nsenter");
        command.args(["-t", &running.init, "-m", "-p", "-u", "-i", "-n", "--"]);
        let command = command.args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Runs `systemctl` there, which must succeed.
    pub fn systemctl(&self, arguments: &[&str]) {
        let output = self.run(&[&["systemctl"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// A property of a unit, from its systemd.
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.properties(&[unit], name).remove(0)
    }

    /// A property of each of these units.
    pub fn properties(&self, units: &[&str], name: &str) -> Vec<String> {
        let show = ["systemctl", "show", "--value", "--property", name];
        let output = self.run(&[&show, units].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        // An empty line separates the values of two units.
        let values: Vec<String> = text
            .split("\n\n")
            .map(|text| text.trim().to_owned())
            .collect();
        assert_eq!(values.len(), units.len(), "{units:?}: {text}");
        values
    }

    pub fn log(&self) -> String {
        let output = self.run(&["journalctl", "--unit", "fleetd", "--no-pager"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for PrivateMachine {
    fn drop(&mut self) {
        if std::thread::panicking() && self.is_running() {
            println!("fleetd of machine {} has logged:", self.id);
            let log = self.log();
            let lines = log
                .lines()
                .filter(|line| !line.contains("answered method=GET"));
            lines.for_each(|line| println!("{line}"));
        }
        self.kill();
    }
}

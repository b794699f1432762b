//! A private network with a bridge. Machines have links to it that can be cut.

use std::net::Ipv4Addr;
use std::process::Command;

use super::RunningProgram;
use super::systemd::{Ended, private_systemd};

/// A network namespace with a bridge, isolated from the outside, removed on drop.
pub struct PrivateNetwork {
    program: RunningProgram,
    /// A process in it.
    inside: String,
}

impl PrivateNetwork {
    /// Address of the bridge, and so of servers in the network.
    pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);

    /// `None` if no network can be created: the test is skipped then, with a message, unless `SYSTEMD_REQUIRED`
    /// is set.
    pub async fn create() -> Option<Self> {
        let address = format!("{}/24", Self::ADDRESS);
        let mut program = private_systemd(&["network", &address]);
        let inside = Ended::or_line(&mut program, "network ").await?;
        Some(Self { program, inside })
    }

    /// Address of the machine with a number, with the prefix length.
    pub(super) fn machine_address(number: u32) -> String {
        let [a, b, c, _] = Self::ADDRESS.octets();
        format!("{a}.{b}.{c}.{}/24", 10 + number)
    }

    /// The process that holds the network.
    pub(super) fn process(&self) -> &str {
        &self.inside
    }

    /// Takes the link of a machine down in both directions.
    pub fn cut(&self, machine: u32) {
        self.set_link(machine, "down");
    }

    /// Takes the link of a machine up again.
    pub fn heal(&self, machine: u32) {
        self.set_link(machine, "up");
    }

    fn set_link(&self, machine: u32, state: &str) {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.inside, "--net", "--"]);
        command.args(["ip", "link", "set", "dev", &format!("m{machine}"), state]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for PrivateNetwork {
    fn drop(&mut self) {
        Ended::wait(&mut self.program);
    }
}

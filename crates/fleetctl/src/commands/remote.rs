//! Runs commands on the machines of units: locally if that is this machine, else over ssh.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context as _;
use tokio::process::Command;

use crate::client::Text;
use crate::output::{self, PrintablePieces};
use crate::session::Session;
use crate::ssh::{self, RemoteCommand, SshHost};
use hyperfleet_fleet_model::wire::MachineView;

const MACHINE_ID: &str = "/etc/machine-id";

/// Whether a machine of the cluster is this host.
fn is_local(id: &str) -> bool {
    std::fs::read_to_string(MACHINE_ID).is_ok_and(|local| local.trim() == id)
}

/// Runs a command on a machine; returns its status.
///
/// # Errors
/// The command, or ssh, could not be started.
pub(super) async fn run_on(
    session: &Session,
    machine: &MachineView,
    ssh_port: u16,
    words: &[&str],
) -> anyhow::Result<ExitCode> {
    if is_local(&machine.id) && session.bastion()?.is_none() {
        let status = Command::new(words[0]).args(&words[1..]).status().await;
        return Ok(code(
            status.with_context(|| format!("unable to run {}", words[0]))?,
        ));
    }
    let command = RemoteCommand {
        words: words.iter().map(|word| ssh::quoted(word)).collect(),
        forwards_agent: false,
    };
    over_ssh(session, machine, ssh_port, &command).await
}

/// Runs a command on a machine over ssh, even on this host.
///
/// # Errors
/// ssh could not be started, or the machine has no address.
pub(super) async fn over_ssh(
    session: &Session,
    machine: &MachineView,
    port: u16,
    command: &RemoteCommand,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !machine.ip.is_empty(),
        "machine {} has no address for ssh",
        machine.id
    );
    let host = SshHost {
        host: machine.ip.clone(),
        port,
    };
    let bastion = session.bastion()?;
    let status = ssh::run(&session.ssh_options(), &host, bastion.as_ref(), command).await?;
    Ok(code(status))
}

/// Prints a text of the API as it arrives, on a terminal without control characters.
///
/// # Errors
/// The connection broke, or the pipe is closed.
pub(super) async fn print_text(mut text: Text) -> anyhow::Result<()> {
    let mut printer = TextPrinter::new();
    while let Some(piece) = text.next().await? {
        printer.print(&piece)?;
    }
    Ok(printer.end()?)
}

/// Prints a text in pieces, on a terminal without control characters.
pub(super) struct TextPrinter {
    /// `None` unless standard output is a terminal.
    printable: Option<PrintablePieces>,
}

impl TextPrinter {
    pub(super) fn new() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self {
            printable: is_terminal.then(PrintablePieces::default),
        }
    }

    /// Prints the next piece.
    ///
    /// # Errors
    /// The pipe is closed.
    pub(super) fn print(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.printable {
            None => output::print_bytes(piece),
            Some(pieces) => output::print(&pieces.next(piece)),
        }
    }

    /// Prints the rest at the end.
    fn end(self) -> io::Result<()> {
        self.printable
            .map_or(Ok(()), |pieces| output::print(&pieces.end()))
    }
}

/// The status of an ended program, as in shells.
fn code(status: ExitStatus) -> ExitCode {
    let signalled = || status.signal().map(|signal| 128 + signal);
    let code = status.code().or_else(signalled).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

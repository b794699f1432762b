//! The response of this machine: the output of `systemctl` and `journalctl`.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::events::JournalEvents;
use super::journal::Journal;
use super::journalctl::{Failure, JOURNALCTL};
use super::shortened::read_limited;
use super::{Error, Inspected, Inspection, JournalPosition, Own, Request, TextStream};
use crate::agent::Bus;

/// Timeout of `systemctl status`.
const STATUS_TIME_MAX: Duration = Duration::from_secs(20);
/// Most that is kept of its output, in bytes.
pub(super) const STATUS_BYTES_MAX: usize = 256 << 10;

const SYSTEMCTL: &str = "systemctl";

pub(super) async fn inspect(own: &Own, request: &Request<'_>) -> Result<Inspected, Error> {
    match &request.inspection {
        Inspection::Status => status(own, request.unit).await,
        Inspection::Journal {
            lines,
            follows,
            after,
        } => {
            let journal = Journal::new(own.bus, request.unit);
            let events = match after {
                _ if !follows => JournalEvents::newest(journal, *lines),
                Some(position) => JournalEvents::resume(journal, position).await,
                None => JournalEvents::follow(journal, *lines).await,
            };
            let events = events.map_err(|failure| no_journal(own, failure, after.as_ref()))?;
            Ok(Inspected {
                exit_status: None,
                text: TextStream::of_journal(events),
            })
        }
    }
}

fn no_journal(own: &Own, failure: Failure, after: Option<&JournalPosition>) -> Error {
    match (failure, after) {
        (Failure::RefusedCursor(message), Some(position)) => Error::UnusablePosition {
            position: position.clone(),
            message,
        },
        (Failure::NotStarted(error), _) => not_run(own, JOURNALCTL, &error),
        (failure, _) => failed(own, JOURNALCTL, &failure),
    }
}

async fn status(own: &Own, unit: &str) -> Result<Inspected, Error> {
    let spawned = spawn(SYSTEMCTL, &status_arguments(own.bus, unit));
    let (child, output) = spawned.map_err(|error| not_run(own, SYSTEMCTL, &error))?;
    let ended = timeout(STATUS_TIME_MAX, read_status(child, output)).await;
    let ended = ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    ended.map_err(|error| failed(own, SYSTEMCTL, &error))
}

fn not_run(own: &Own, program: &'static str, error: &io::Error) -> Error {
    Error::NotRun {
        program,
        machine: own.machine.clone(),
        message: error.to_string(),
    }
}

fn failed(own: &Own, program: &'static str, error: &dyn std::error::Error) -> Error {
    Error::Failed {
        program,
        machine: own.machine.clone(),
        cause: error.to_string(),
    }
}

/// A unit's name may begin with a dash, so it comes after `--`.
fn status_arguments(bus: Bus, unit: &str) -> Vec<&str> {
    let user = (bus == Bus::User).then_some("--user").into_iter();
    user.chain(["--no-pager", "--full", "status", "--", unit])
        .collect()
}

/// Starts a program with both outputs combined.
fn spawn(program: &str, arguments: &[&str]) -> io::Result<(Child, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let child = Command::new(program)
        .args(arguments)
        // No colours and no pager, whatever fleetd's environment sets.
        .env("SYSTEMD_COLORS", "0")
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .kill_on_drop(true)
        .spawn()?;
    let output = pipe::Receiver::from_owned_fd(reader.into())?;
    Ok((child, output))
}

async fn read_status(mut child: Child, output: pipe::Receiver) -> io::Result<Inspected> {
    let text = read_limited(output, STATUS_BYTES_MAX as u64).await?;
    let status = child.wait().await?;
    Ok(Inspected {
        exit_status: status.code(),
        text: TextStream::whole(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_that_of_the_machine_or_of_the_user() {
        let expected = ["--no-pager", "--full", "status", "--", "a.service"];
        assert_eq!(status_arguments(Bus::System, "a.service"), expected);
        let arguments = status_arguments(Bus::User, "a.service");
        assert_eq!((arguments[0], &arguments[1..]), ("--user", &expected[..]));
    }

    #[tokio::test]
    async fn what_a_program_prints_comes_with_its_exit_status() {
        let script = ["-c", "echo out; echo err >&2; exit 3"];
        let (child, output) = spawn("sh", &script).unwrap();
        let mut ended = read_status(child, output).await.unwrap();
        assert_eq!(ended.exit_status, Some(3));
        assert_eq!(ended.text.next().await.unwrap().unwrap(), b"out\nerr\n");
        assert_eq!(ended.text.next().await.unwrap(), None);
        assert!(spawn("no such program", &[]).is_err());
    }
}

//! The response of this machine: the output of `systemctl` and `journalctl`.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::events::JournalEvents;
use super::journal::Journal;
use super::journalctl::{Failure, JOURNALCTL, follow_options, journal_of};
use super::shortened::read_limited;
use super::{Error, Follow, Inspected, Inspection, JournalPosition, Own, Request, TextStream};
use crate::agent::Bus;

/// Timeout of `systemctl status`.
const STATUS_TIME_MAX: Duration = Duration::from_secs(20);
/// Most that is kept of its output, in bytes.
pub(super) const STATUS_BYTES_MAX: usize = 256 << 10;

const SYSTEMCTL: &str = "systemctl";

pub(super) async fn inspect(own: &Own, request: &Request<'_>) -> Result<Inspected, Error> {
    if let Inspection::Journal {
        lines,
        output,
        follow: Follow::Events { after },
    } = &request.inspection
    {
        let journal = Journal::new(own.bus, request.unit, output);
        return journal_events(own, journal, *lines, after.clone()).await;
    }
    let options = match &request.inspection {
        Inspection::Journal {
            follow: Follow::Text,
            ..
        } => follow_options().map(Vec::from),
        _ => Ok(Vec::new()),
    };
    let options = options.map_err(|error| not_run(own, JOURNALCTL, &error))?;
    let (program, arguments) = command(own.bus, request.unit, &request.inspection, &options);
    let spawned = spawn(program, &arguments);
    let (child, output) = spawned.map_err(|error| not_run(own, program, &error))?;
    match request.inspection {
        Inspection::Journal { .. } => Ok(Inspected {
            exit_status: None,
            text: TextStream::of_program(output, child),
        }),
        Inspection::Status => {
            let ended = timeout(STATUS_TIME_MAX, read_status(child, output)).await;
            let ended = ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            ended.map_err(|error| failed(own, program, &error))
        }
    }
}

async fn journal_events(
    own: &Own,
    journal: Journal,
    lines: u32,
    after: Option<JournalPosition>,
) -> Result<Inspected, Error> {
    let begun = match &after {
        Some(position) => JournalEvents::resume(journal, position).await,
        None => JournalEvents::begin(journal, lines).await,
    };
    match (begun, after) {
        (Ok(events), _) => Ok(Inspected {
            exit_status: None,
            text: TextStream::of_journal(events),
        }),
        (Err(Failure::RefusedCursor(message)), Some(position)) => {
            Err(Error::UnusablePosition { position, message })
        }
        (Err(Failure::NotStarted(error)), _) => Err(not_run(own, JOURNALCTL, &error)),
        (Err(error), _) => Err(failed(own, JOURNALCTL, &error)),
    }
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

/// The command to run. A unit's name may begin with a dash, so it comes after `--` or `--unit=`.
fn command(
    bus: Bus,
    unit: &str,
    inspection: &Inspection,
    follow_options: &[String],
) -> (&'static str, Vec<String>) {
    match inspection {
        Inspection::Status => {
            let user = (bus == Bus::User).then_some("--user").into_iter();
            let rest = ["--no-pager", "--full", "status", "--", unit];
            let arguments = user.chain(rest).map(str::to_owned);
            (SYSTEMCTL, arguments.collect())
        }
        Inspection::Journal { lines, output, .. } => {
            let mut arguments = vec![
                journal_of(bus, unit),
                "--no-pager".to_owned(),
                format!("--lines={lines}"),
                format!("--output={output}"),
            ];
            arguments.extend_from_slice(follow_options);
            (JOURNALCTL, arguments)
        }
    }
}

/// Starts a program with both outputs combined.
fn spawn(program: &str, arguments: &[String]) -> io::Result<(Child, pipe::Receiver)> {
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
    fn the_commands_are_those_of_the_machine_or_of_the_user() {
        let journal = Inspection::Journal {
            lines: 7,
            output: "cat".to_owned(),
            follow: Follow::Text,
        };
        let follow = ["--follow".to_owned()];
        let (program, arguments) = command(Bus::System, "web@1.service", &journal, &follow);
        let expected = [
            "--unit=web@1.service",
            "--no-pager",
            "--lines=7",
            "--output=cat",
            "--follow",
        ];
        assert_eq!(
            (program, arguments),
            (JOURNALCTL, expected.map(str::to_owned).into())
        );
        let (program, arguments) = command(Bus::User, "a.service", &Inspection::Status, &follow);
        let expected = [
            "--user",
            "--no-pager",
            "--full",
            "status",
            "--",
            "a.service",
        ];
        assert_eq!(
            (program, arguments),
            (SYSTEMCTL, expected.map(str::to_owned).into())
        );
    }

    #[tokio::test]
    async fn what_a_program_prints_comes_with_its_exit_status() {
        let script = ["-c", "echo out; echo err >&2; exit 3"].map(str::to_owned);
        let (child, output) = spawn("sh", &script).unwrap();
        let mut ended = read_status(child, output).await.unwrap();
        assert_eq!(ended.exit_status, Some(3));
        assert_eq!(ended.text.next().await.unwrap().unwrap(), b"out\nerr\n");
        assert_eq!(ended.text.next().await.unwrap(), None);
        assert!(spawn("no such program", &[]).is_err());
    }

    #[tokio::test]
    async fn an_endless_program_ends_with_its_text() {
        let script = ["-c", "echo $$; exec sleep 1000"].map(str::to_owned);
        let (child, output) = spawn("sh", &script).unwrap();
        let mut text = TextStream::of_program(output, child);
        let pid = text.next().await.unwrap().unwrap();
        let pid = String::from_utf8(pid).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        drop(text);
        for _ in 0..500 {
            let state = std::fs::read_to_string(&stat).unwrap_or_default();
            // Gone, or a zombie.
            if state.is_empty() || state.contains(") Z ") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it still runs");
    }
}

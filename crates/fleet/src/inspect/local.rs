//! The answer of this machine: what `systemctl` and `journalctl` print.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Error, Inspected, Inspection, Own, Request, TextStream};
use crate::agent::Bus;

/// How long `systemctl status` may take.
const STATUS_TIME_MAX: Duration = Duration::from_secs(20);
/// Most that is kept of what it prints, in bytes.
const STATUS_BYTES_MAX: u64 = 1 << 20;

const SYSTEMCTL: &str = "systemctl";
const JOURNALCTL: &str = "journalctl";

pub(super) async fn inspect(own: &Own, request: &Request<'_>) -> Result<Inspected, Error> {
    let (program, arguments) = command(own.bus, request.unit, &request.inspection);
    let failed = |error: io::Error| Error::NotRun {
        program,
        machine: own.machine.clone(),
        message: error.to_string(),
    };
    let (child, output) = spawn(program, &arguments).map_err(failed)?;
    match request.inspection {
        Inspection::Journal { .. } => Ok(Inspected {
            exit_status: None,
            text: TextStream::of_program(output, child),
        }),
        Inspection::Status => {
            let ended = timeout(STATUS_TIME_MAX, read_status(child, output)).await;
            let ended = ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            ended.map_err(failed)
        }
    }
}

/// What is run. A unit's name may begin with a dash, so it stands behind `--` or `--unit=`.
fn command(bus: Bus, unit: &str, inspection: &Inspection) -> (&'static str, Vec<String>) {
    let is_user = bus == Bus::User;
    match inspection {
        Inspection::Status => {
            let user = is_user.then_some("--user").into_iter();
            let rest = ["--no-pager", "--full", "status", "--", unit];
            let arguments = user.chain(rest).map(str::to_owned);
            (SYSTEMCTL, arguments.collect())
        }
        Inspection::Journal {
            lines,
            output,
            follow,
        } => {
            let option = if is_user { "--user-unit" } else { "--unit" };
            let mut arguments = vec![
                format!("{option}={unit}"),
                "--no-pager".to_owned(),
                format!("--lines={lines}"),
                format!("--output={output}"),
            ];
            arguments.extend(follow.then(|| "--follow".to_owned()));
            (JOURNALCTL, arguments)
        }
    }
}

/// Starts a program, both of whose outputs come as one.
fn spawn(program: &str, arguments: &[String]) -> io::Result<(Child, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let child = Command::new(program)
        .args(arguments)
        // Neither colours nor a pager, whatever the environment of fleetd says.
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
    let mut text = Vec::new();
    output.take(STATUS_BYTES_MAX).read_to_end(&mut text).await?;
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
            follow: true,
        };
        let (program, arguments) = command(Bus::System, "web@1.service", &journal);
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
        let (program, arguments) = command(Bus::User, "a.service", &Inspection::Status);
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
            // Gone, or waiting to be read by its parent.
            if state.is_empty() || state.contains(") Z ") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it still runs");
    }
}

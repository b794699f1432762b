//! `doctor`: checks the connection to the API, its servers and the clock.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use reqwest::Response;
use serde::Serialize;

use super::version::VERSION;
use crate::cli::OutputArgs;
use crate::client::{Client, Error};
use crate::machines::{Detail, HALTED_HINT, halted, id_legend, state};
use crate::output::{self, Colour, coloured, counted, printable};
use crate::session::Session;
use hyperfleet_fleet_model::wire::MachineView;

/// Header with the id of the server's own machine.
const OWN_MACHINE: &str = "fleet-machine-id";
/// Header that says whether that machine is a member of the cluster.
const IS_MEMBER: &str = "fleet-machine-member";
/// Clock difference above which logs and certificates become hard to understand.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Level {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    #[serde(rename = "check")]
    subject: &'static str,
    level: Level,
    text: String,
    /// Empty if there is nothing to do.
    #[serde(skip_serializing_if = "str::is_empty")]
    hint: &'static str,
}

impl Check {
    fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        let (level, text, hint) = (Level::Ok, text.into(), "");
        Self {
            subject,
            level,
            text,
            hint,
        }
    }

    fn warn(subject: &'static str, text: impl Into<String>, hint: &'static str) -> Self {
        let (level, text) = (Level::Warn, text.into());
        Self {
            subject,
            level,
            text,
            hint,
        }
    }

    fn fail(subject: &'static str, text: impl Into<String>, hint: &'static str) -> Self {
        let (level, text) = (Level::Fail, text.into());
        Self {
            subject,
            level,
            text,
            hint,
        }
    }
}

pub(super) async fn run(session: &Session, args: OutputArgs) -> anyhow::Result<ExitCode> {
    let checks = match session.client().await {
        Ok(client) => checks(client).await,
        Err(error) => vec![Check::fail(
            "endpoint",
            format!("{error:#}"),
            "correct --endpoint, --tunnel or the files of certificates",
        )],
    };
    match output::structured(args.format, &checks)? {
        Some(text) => output::print(&text)?,
        None => checks
            .iter()
            .try_for_each(|check| output::print(&line(check)))?,
    }
    let has_failed = checks.iter().any(|check| check.level == Level::Fail);
    Ok(if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn checks(client: &Client) -> Vec<Check> {
    let response = match client.head_of_answer().await {
        Ok(response) => response,
        Err(error) => return vec![unreachable(&error)],
    };
    let mut checks = vec![Check::ok(
        "endpoint",
        format!("{} answers", client.endpoint()),
    )];
    let date = response
        .headers()
        .get("date")
        .and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let server = response
        .headers()
        .get("server")
        .and_then(|server| server.to_str().ok());
    let server = server.map(str::to_owned);
    let agent = membership(&response);
    drop(response);
    match client.machines().await {
        Ok(machines) => {
            checks.push(Check::ok(
                "api",
                server.as_deref().unwrap_or("the fleet API, version 1"),
            ));
            checks.push(Check::ok("etcd", "the server reads its store"));
            checks.push(versions(server.as_deref(), &machines));
            checks.push(cluster(&machines));
            checks.extend(agent);
            checks.extend(halted(&machines).map(|text| Check::fail("agents", text, HALTED_HINT)));
        }
        Err(error) => checks.extend(refused(&error)),
    }
    checks.extend(date.map(|date| clock(date, SystemTime::now())));
    checks
}

fn unreachable(error: &Error) -> Check {
    let hint = match error {
        Error::TimedOut { .. } => {
            "the server accepts connections and does not answer: look at its log and load"
        }
        _ => {
            "check that fleetd runs there (systemctl status fleetd), and --endpoint; a socket may need root"
        }
    };
    Check::fail("endpoint", error.words(), hint)
}

/// What a refusal says about the API and etcd behind it.
fn refused(error: &Error) -> Vec<Check> {
    let words = error.words();
    match error {
        Error::Refused { status: 503, .. } if words.contains("etcd") => vec![
            Check::ok("api", "a fleet API"),
            Check::fail(
                "etcd",
                words,
                "check that etcd runs and that fleetd reaches it: etcd_servers in fleet.conf",
            ),
        ],
        Error::Refused {
            status: 401 | 403, ..
        } => vec![Check::fail(
            "api",
            words,
            "the server asks for other credentials: see --cert-file and --key-file",
        )],
        Error::Refused { status: 503, .. } => {
            vec![Check::fail(
                "api",
                words,
                "the server is starting, stopping or at its limits: try again",
            )]
        }
        _ => vec![Check::fail(
            "api",
            words,
            "this is no fleet API: correct --endpoint",
        )],
    }
}

fn versions(server: Option<&str>, machines: &[MachineView]) -> Check {
    let server = server
        .and_then(|server| server.split_once('/'))
        .map(|(_, version)| version);
    let all = machines
        .iter()
        .map(|machine| machine.version.as_str())
        .chain(server);
    let mut other: Vec<&str> = all
        .filter(|version| !version.is_empty() && *version != VERSION)
        .collect();
    other.sort_unstable();
    other.dedup();
    if other.is_empty() {
        return Check::ok("versions", format!("fleetctl {VERSION}"));
    }
    Check::warn(
        "versions",
        format!("fleetctl {VERSION}; fleetd {}", other.join(", ")),
        "bring fleetctl and all machines to one version",
    )
}

fn cluster(machines: &[MachineView]) -> Check {
    let ready = machines
        .iter()
        .filter(|machine| state(machine) == "ready")
        .count();
    let text = format!("{}, {ready} ready", counted(machines.len(), "machine"));
    match (machines.len(), ready) {
        (0, _) => Check::warn(
            "machines",
            "no machines",
            "start fleetd on the machines that are to run units",
        ),
        // Halted machines are another check.
        (_, 0) if machines.iter().any(|machine| !machine.halted) => Check::warn(
            "machines",
            text,
            "no machine takes units: fleetctl uncordon one",
        ),
        _ => Check::ok("machines", text),
    }
}

/// Whether the machine of the server that answers is a member; `None` if it runs no agent, or is older.
fn membership(response: &Response) -> Option<Check> {
    let header = |name| response.headers().get(name)?.to_str().ok();
    let (id, is_member) = (header(OWN_MACHINE)?, header(IS_MEMBER)?);
    let id = id_legend(id, Detail::Short);
    Some(if is_member == "true" {
        Check::ok("member", format!("the server's machine {id} is a member"))
    } else {
        Check::fail(
            "member",
            format!("the server's machine {id} is no member of the cluster, and runs no units"),
            "give each machine its own /etc/machine-id, for instance after copying an image; journalctl -u fleetd on that machine says what is wrong",
        )
    })
}

fn clock(server: SystemTime, here: SystemTime) -> Check {
    let difference = here
        .duration_since(server)
        .unwrap_or_else(|error| error.duration());
    let text = format!("the server's clock differs by {} s", difference.as_secs());
    if difference > CLOCK_DIFFERENCE_MAX {
        return Check::warn("clock", text, "synchronise the clocks: timedatectl status");
    }
    Check::ok("clock", text)
}

fn line(check: &Check) -> String {
    let (word, colour) = match check.level {
        Level::Ok => ("OK", Colour::Green),
        Level::Warn => ("WARN", Colour::Yellow),
        Level::Fail => ("FAIL", Colour::Red),
    };
    let hint = if check.hint.is_empty() {
        String::new()
    } else {
        format!(" -> {}", check.hint)
    };
    let word = coloured(&format!("{word:4}"), colour);
    format!(
        "{word}  {:8}  {}{hint}\n",
        check.subject,
        printable(&check.text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_is_wrong() {
        let refused = |status, message: &str| {
            let message = message.to_owned();
            let checks = refused(&Error::Refused { status, message });
            let checks = checks.into_iter().map(|check| (check.subject, check.level));
            checks.collect::<Vec<_>>()
        };
        let etcd = refused(503, "fleet server unable to communicate with etcd");
        assert_eq!(etcd, [("api", Level::Ok), ("etcd", Level::Fail)]);
        assert_eq!(refused(404, ""), [("api", Level::Fail)]);
    }

    #[test]
    fn versions_that_differ_and_clocks_that_differ_are_warnings() {
        let machine = |version: &str| MachineView {
            version: version.to_owned(),
            ..MachineView::default()
        };
        assert_eq!(
            versions(Some(&format!("fleetd/{VERSION}")), &[machine("")]).level,
            Level::Ok
        );
        let other = versions(None, &[machine("9"), machine(VERSION), machine("9")]);
        assert_eq!(
            (other.level, other.text),
            (Level::Warn, format!("fleetctl {VERSION}; fleetd 9"))
        );
        let now = SystemTime::now();
        assert_eq!(clock(now, now + Duration::from_secs(4)).level, Level::Ok);
        assert_eq!(clock(now + Duration::from_mins(1), now).level, Level::Warn);
    }

    #[test]
    fn a_cluster_without_ready_machines_is_a_warning() {
        let cordoned = MachineView {
            cordoned: true,
            ..MachineView::default()
        };
        for (machines, level) in [
            (vec![], Level::Warn),
            (vec![cordoned.clone()], Level::Warn),
            (vec![cordoned, MachineView::default()], Level::Ok),
        ] {
            assert_eq!(cluster(&machines).level, level);
        }
    }
}

//! `journal`: prints a unit's journal. A followed journal arrives as events, and each connection resumes after
//! the last event of the previous one. Servers of older versions send new lines as a text only, which cannot be
//! resumed.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::time::sleep;

use super::named_units::{self, Running};
use super::remote::{self, TextPrinter};
use crate::cli::JournalArgs;
use crate::client::{Client, Error, Event, Events, Text};
use crate::machines::{Detail, id_legend};
use crate::output::{self, counted};
use crate::session::Session;
use crate::wait::Outage;
use hyperfleet_fleet_model::wire::MachineView;

const OLDER_SERVER: &str = "the fleetd of the unit's machine is older than this fleetctl: lines are lost when the connection ends";
/// How many machines a message names.
const EXAMPLES_MAX: usize = 5;
/// Pause before an ended stream is opened again.
const RETRY: Duration = Duration::from_secs(1);

pub(super) async fn run(session: &Session, args: &JournalArgs) -> anyhow::Result<ExitCode> {
    let [argument] = &args.names.units[..] else {
        bail!("One unit file must be provided.");
    };
    let unit = match named_units::running(session, argument).await? {
        Running::On(unit) => unit,
        Running::Unknown(name) => bail!("Unit {name} does not exist."),
        Running::Nowhere(name) => bail!("Unit {name} does not appear to be running."),
    };
    let machines = session.machines().await?;
    let machine = match (&args.machine, &unit.machines[..]) {
        (Some(name), _) => machines.find(name)?,
        (None, [machine]) => machine,
        (None, several) => {
            let some = several.iter().take(EXAMPLES_MAX);
            let some: Vec<_> = some
                .map(|machine| id_legend(&machine.id, Detail::Short))
                .collect();
            bail!(
                "Unable to retrieve journal of global unit {}: name a machine with --machine; it runs on {}: {}",
                unit.name,
                counted(several.len(), "machine"),
                some.join(", ")
            )
        }
    };
    let client = session.client().await?;
    if !args.ssh.ssh && !args.sudo && session.bastion()?.is_none() {
        match begin(client, args, &unit.name, machine).await {
            Ok(Begun::Followed(events)) => {
                match follow(client, events, args, &unit.name, machine).await? {}
            }
            Ok(Begun::FollowedText(text)) => {
                match follow_text(client, text, args, &unit.name, machine).await? {}
            }
            Ok(Begun::Text(text)) => {
                remote::print_text(text).await?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) if error.is_missing_route() => named_units::say_fallback(&error),
            Err(error) => {
                let doing = || format!("Error retrieving the journal of {}", unit.name);
                return Err(error).with_context(doing);
            }
        }
    }
    over_ssh(session, args, &unit.name, machine).await
}

/// The beginning of a response.
enum Begun {
    Text(Text),
    Followed(Events),
    FollowedText(Text),
}

async fn begin(
    client: &Client,
    args: &JournalArgs,
    unit: &str,
    machine: &MachineView,
) -> Result<Begun, Error> {
    let query = query(args, machine);
    if !args.follow {
        return client.journal(unit, &query).await.map(Begun::Text);
    }
    match client.watch_journal(unit, &query, None).await {
        // The response of a server without journal events, or one that asks such a server. The second response
        // reports any other fault of the request.
        Err(Error::Refused { status: 400, .. }) => {
            let text = client.follow_journal(unit, &query).await;
            text.map(Begun::FollowedText)
        }
        events => events.map(Begun::Followed),
    }
}

/// Prints a followed journal over as many connections as necessary. An event is printed whole or not at all, so
/// a broken connection loses and repeats no line.
async fn follow(
    client: &Client,
    mut events: Events,
    args: &JournalArgs,
    unit: &str,
    machine: &MachineView,
) -> anyhow::Result<Infallible> {
    let (query, mut printer) = (query(args, machine), TextPrinter::new());
    let (mut after, mut outage) = (None, Outage::default());
    loop {
        while let Ok(Some(event)) = events.next().await {
            if let Some(lines) = lines_of(&event) {
                printer.print(&lines)?;
                after = event.id;
            }
        }
        let open = async || client.watch_journal(unit, &query, after.as_deref()).await;
        events = again(&mut outage, unit, open).await?;
    }
}

/// Prints a followed journal that is a text. Lines between two connections are lost.
async fn follow_text(
    client: &Client,
    mut text: Text,
    args: &JournalArgs,
    unit: &str,
    machine: &MachineView,
) -> anyhow::Result<Infallible> {
    output::notice(OLDER_SERVER);
    let (mut query, mut printer) = (query(args, machine), TextPrinter::new());
    query[0].1 = "0".to_owned();
    let mut outage = Outage::default();
    loop {
        while let Ok(Some(piece)) = text.next().await {
            printer.print(&piece)?;
        }
        let open = async || client.follow_journal(unit, &query).await;
        text = again(&mut outage, unit, open).await?;
    }
}

/// Opens an ended stream again, as soon as the server is reachable.
///
/// # Errors
/// The server refuses, or is unreachable for too long.
async fn again<T>(
    outage: &mut Outage,
    unit: &str,
    open: impl AsyncFn() -> Result<T, Error>,
) -> anyhow::Result<T> {
    loop {
        sleep(RETRY).await;
        let opened = outage.passed_over(open().await);
        let doing = || format!("Error following the journal of {unit}");
        if let Some(opened) = opened.with_context(doing)? {
            return Ok(opened);
        }
    }
}

/// The lines of an event: a text, or bytes if it is not UTF-8.
fn lines_of(event: &Event) -> Option<Vec<u8>> {
    if event.name != "lines" {
        return None;
    }
    match &event.data {
        Value::String(text) => Some(text.clone().into_bytes()),
        bytes => serde_json::from_value(bytes.clone()).ok(),
    }
}

fn query(args: &JournalArgs, machine: &MachineView) -> [(&'static str, String); 3] {
    [
        ("lines", args.lines.to_string()),
        ("output", args.output.clone()),
        ("machineID", machine.id.clone()),
    ]
}

async fn over_ssh(
    session: &Session,
    args: &JournalArgs,
    unit: &str,
    machine: &MachineView,
) -> anyhow::Result<ExitCode> {
    let lines = args.lines.to_string();
    let mut words = vec![
        "journalctl",
        "--unit",
        unit,
        "--no-pager",
        "-n",
        &lines,
        "--output",
        &args.output,
    ];
    if args.follow {
        words.push("-f");
    }
    if args.sudo {
        words.insert(0, "sudo");
    }
    remote::run_on(session, machine, args.ssh.ssh_port, &words).await
}

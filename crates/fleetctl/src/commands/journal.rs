//! `journal`: prints a unit's journal. It arrives as events, and each connection of a followed one resumes after the
//! last event of the previous one.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::Local;
use tokio::time::sleep;

use super::entry;
use super::named_units::{self, Running};
use super::remote::{self, TextPrinter};
use crate::cli::JournalArgs;
use crate::client::{Client, Error, Event, Events};
use crate::machines::{Detail, id_legend};
use crate::output::counted;
use crate::session::Session;
use crate::wait::Outage;
use hyperfleet_fleet_model::wire::MachineView;

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
    if !args.ssh.ssh && !args.sudo && session.bastion()?.is_none() {
        let journal = Journal {
            client: session.client().await?,
            args,
            unit: &unit.name,
            machine,
        };
        match journal.open(None).await {
            Ok(events) => {
                journal.print(events).await?;
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

/// A journal over the API.
struct Journal<'a> {
    client: &'a Client,
    args: &'a JournalArgs,
    unit: &'a str,
    machine: &'a MachineView,
}

impl Journal<'_> {
    /// Opens the stream, after the event with this id.
    async fn open(&self, after: Option<&str>) -> Result<Events, Error> {
        let (client, args) = (self.client, self.args);
        let machine = &self.machine.id;
        client
            .journal(self.unit, machine, args.lines, args.follow, after)
            .await
    }

    /// Prints a journal to its end; a followed one over as many connections as necessary. An event is printed whole or
    /// not at all, so a broken connection loses and repeats no entry.
    async fn print(&self, mut events: Events) -> anyhow::Result<()> {
        let mut printer = TextPrinter::new();
        let (mut after, mut outage) = (None, Outage::default());
        loop {
            let ended = loop {
                match events.next().await {
                    Ok(Some(event)) => {
                        printer.print(&self.text_of(&event)?)?;
                        after = event.id;
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if !self.args.follow {
                let doing = || format!("Error retrieving the journal of {}", self.unit);
                return ended.with_context(doing);
            }
            events = self.open_again(&mut outage, after.as_deref()).await?;
        }
    }

    fn text_of(&self, event: &Event) -> anyhow::Result<Vec<u8>> {
        match event.name.as_str() {
            "entry" => Ok(entry::text(&event.data, self.args.output, &Local)),
            "position" => Ok(Vec::new()),
            _ => bail!(
                "the fleetd of machine {} has another version, and sends other events: update it, or add --ssh",
                id_legend(&self.machine.id, Detail::Short)
            ),
        }
    }

    /// Opens an ended stream again, as soon as the server is reachable.
    ///
    /// # Errors
    /// The server refuses, or is unreachable for too long.
    async fn open_again(&self, outage: &mut Outage, after: Option<&str>) -> anyhow::Result<Events> {
        loop {
            sleep(RETRY).await;
            let opened = outage.passed_over(self.open(after).await);
            let doing = || format!("Error following the journal of {}", self.unit);
            if let Some(opened) = opened.with_context(doing)? {
                return Ok(opened);
            }
        }
    }
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
        args.output.name(),
    ];
    if args.follow {
        words.push("-f");
    }
    if args.sudo {
        words.insert(0, "sudo");
    }
    remote::run_on(session, machine, args.ssh.ssh_port, &words).await
}

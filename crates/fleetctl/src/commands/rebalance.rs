//! `rebalance`: shows moves that even out the load of machines, and orders them.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

use super::list::POLL;
use crate::cli::{Format, RebalanceArgs};
use crate::client::Client;
use crate::machines::{Detail, Machines};
use crate::output::{self, Table, counted};
use crate::session::Session;
use crate::wait::Progress;
use hyperfleet_fleet_model::wire::{MoveView, RebalanceView};

pub(super) async fn run(session: &Session, args: &RebalanceArgs) -> anyhow::Result<ExitCode> {
    let client = session.client().await?;
    let plan = match client.rebalance_plan(args.max).await {
        Err(error) if error.is_missing_route() => bail!("this version of fleetd cannot rebalance"),
        plan => plan.context("Error planning moves")?,
    };
    let machines = session.machines().await?;
    match output::structured(args.output.format, &plan)? {
        Some(text) => output::print(&text)?,
        None => output::print(&text(&plan, &machines))?,
    }
    if plan.moves.is_empty() || args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let count = plan.moves.len();
    if !args.yes && !output::confirmed(&format!("Move {}?", counted(count, "unit"))).await? {
        output::notice("Nothing was moved: use --yes to move units without being asked.");
        return Ok(ExitCode::FAILURE);
    }
    client
        .rebalance(&plan.moves)
        .await
        .context("Error ordering moves")?;
    let unmoved = follow(client, &plan.moves, args).await?;
    if unmoved.is_empty() {
        if args.output.format == Format::Table {
            output::line(&format!("Moved {}", counted(count, "unit")))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let time = humantime::format_duration(args.timeout);
    output::notice(&format!(
        "Moved {} of {} within {time}. Not moved:",
        count - unmoved.len(),
        counted(count, "unit")
    ));
    for name in unmoved {
        output::notice(&format!("  {name}"));
    }
    output::notice(
        "Moves that are no longer possible are skipped; fleetctl rebalance --dry-run shows what is left.",
    );
    Ok(ExitCode::FAILURE)
}

fn text(plan: &RebalanceView, machines: &Machines) -> String {
    if plan.moves.is_empty() {
        return "Nothing to move: units are spread evenly.\n".to_owned();
    }
    let legend = |id: &str| machines.legend(id, Detail::Short);
    let mut moves = Table::new(["UNIT", "FROM", "TO"].map(str::to_owned).to_vec());
    for MoveView { name, from, to } in &plan.moves {
        moves.push(vec![name.clone(), legend(from), legend(to)]);
    }
    let mut counts = Table::new(["MACHINE", "BEFORE", "AFTER"].map(str::to_owned).to_vec());
    let ids: BTreeSet<&String> = plan.before.keys().chain(plan.after.keys()).collect();
    for id in ids {
        let count = |of: Option<&u32>| of.copied().unwrap_or_default().to_string();
        counts.push(vec![
            legend(id),
            count(plan.before.get(id)),
            count(plan.after.get(id)),
        ]);
    }
    format!("{}\n{}", moves.take_text(), counts.take_text())
}

/// Waits until each unit is on its new machine; returns those that are not in time.
async fn follow(
    client: &Client,
    moves: &[MoveView],
    args: &RebalanceArgs,
) -> anyhow::Result<BTreeSet<String>> {
    let deadline = Instant::now() + args.timeout;
    let mut waiting: Vec<&MoveView> = moves.iter().collect();
    let mut progress = Progress::new();
    loop {
        let mut still = Vec::new();
        for a_move in waiting {
            match client.unit(&a_move.name).await {
                Ok(Some(unit)) if unit.machine.as_ref() == Some(&a_move.to) => {}
                // Destroyed meanwhile.
                Ok(None) => {}
                Ok(Some(_)) => still.push(a_move),
                Err(error) if error.is_passing() => still.push(a_move),
                Err(error) => return Err(error.into()),
            }
        }
        waiting = still;
        if waiting.is_empty() || Instant::now() >= deadline {
            return Ok(waiting
                .into_iter()
                .map(|a_move| a_move.name.clone())
                .collect());
        }
        progress.say(&format!(
            "moving: {} of {} units left",
            waiting.len(),
            moves.len()
        ));
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plans_are_shown_with_the_counts_of_machines() {
        let plan = json!({
            "moves": [{"name": "a.service", "from": "aaaaaaaaaa", "to": "bbbbbbbbbb"}],
            "before": {"aaaaaaaaaa": 2}, "after": {"aaaaaaaaaa": 1, "bbbbbbbbbb": 1},
        });
        let plan: RebalanceView = serde_json::from_value(plan).unwrap();
        assert_eq!(
            text(&plan, &Machines::default()),
            "UNIT\t\tFROM\t\tTO\na.service\taaaaaaaa...\tbbbbbbbb...\n\n\
             MACHINE\t\tBEFORE\tAFTER\naaaaaaaa...\t2\t1\nbbbbbbbb...\t0\t1\n"
        );
        let nothing = json!({"moves": [], "before": {}, "after": {}});
        let nothing: RebalanceView = serde_json::from_value(nothing).unwrap();
        let nothing = text(&nothing, &Machines::default());
        assert_eq!(nothing, "Nothing to move: units are spread evenly.\n");
    }
}

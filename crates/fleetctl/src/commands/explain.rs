//! `explain`: prints why a unit is where it is, or on no machine.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::wire::ExplanationView;

use super::named_units;
use crate::cli::ExplainArgs;
use crate::machines::{Detail, id_legend};
use crate::output::{self, Table, or_dash};
use crate::session::Session;
use crate::source::UnitArgument;

pub(super) async fn run(session: &Session, args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    if args.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let client = session.client().await?;
    let (mut found, mut exit) = (Vec::new(), ExitCode::SUCCESS);
    for argument in &args.names.units {
        let name = UnitArgument::new(argument).name;
        let explanation = client.explanation(&name).await;
        let doing = || format!("Error explaining unit {name}");
        if let Some(explanation) = explanation.with_context(doing)? {
            found.push(explanation);
        } else {
            output::notice(&format!("Unit {name} does not exist."));
            exit = ExitCode::FAILURE;
        }
    }
    if let Some(text) = output::structured(args.output.format, &found)? {
        output::print(&text)?;
        return Ok(exit);
    }
    let texts: Vec<_> = found.iter().map(text).collect();
    output::print(&texts.join("\n"))?;
    Ok(exit)
}

fn text(explanation: &ExplanationView) -> String {
    let current = explanation.current.map_or("", |state| state.as_str());
    let mut table = Table::default();
    for (name, value) in [
        ("Unit:", explanation.name.clone()),
        ("Desired:", explanation.desired.to_string()),
        ("Current:", or_dash(current)),
        (
            "Machine:",
            or_dash(explanation.machine.as_deref().unwrap_or_default()),
        ),
        ("Reason:", explanation.reason.clone()),
    ] {
        table.push(vec![name.to_owned(), value]);
    }
    let mut text = table.take_text();
    if explanation.refusals.is_empty() {
        return text;
    }
    text.push('\n');
    let mut table = Table::new(
        ["REQUIREMENT", "MACHINES", "EXAMPLES"]
            .map(str::to_owned)
            .to_vec(),
    );
    for refusal in &explanation.refusals {
        let examples: Vec<_> = refusal
            .machines
            .iter()
            .map(|id| id_legend(id, Detail::Short))
            .collect();
        table.push(vec![
            refusal.requirement.clone(),
            refusal.count.to_string(),
            or_dash(&examples.join(",")),
        ]);
    }
    text + &table.take_text()
}

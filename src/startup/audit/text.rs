//! The report of a verification as text.

use std::fmt::Write as _;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;

use super::AuditReport;
use crate::domain::Tenancy;
use crate::domain::audit::{RETENTION_MIN, TrailFault, VerifiedChain};
use crate::domain::moment::whole_seconds;

/// The name of a chain whose resources have no tenancy.
const NO_TENANT: &str = "-";

pub(super) fn text(report: &AuditReport) -> String {
    let mut text = String::new();
    let trail = &report.trail;
    let rows: Vec<_> = trail.chains.iter().map(row).collect();
    let heading = ["TENANT", "SEALS", "FROM", "TO", "ENTRIES"].map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&heading]);
        let widths = cells.map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let (a, b, c, d) = (width(0), width(1), width(2), width(3));
    if !rows.is_empty() {
        for row in [&heading].into_iter().chain(&rows) {
            let [tenant, seals, from, to, entries] = row;
            let _ = writeln!(
                text,
                "{tenant:a$}  {seals:b$}  {from:c$}  {to:d$}  {entries}"
            );
        }
        text.push('\n');
    }
    let unsealed = trail.unsealed;
    let oldest = unsealed.oldest_at.map(|at| {
        let age = (report.now - at).num_seconds().max(0);
        format!(", the oldest of {} ({age} s ago)", whole_seconds(at))
    });
    let _ = writeln!(
        text,
        "Entries not sealed yet: {}{}.",
        unsealed.count,
        oldest.unwrap_or_default()
    );
    if let Some(bounds) = &report.bounds
        && let Some(newest) = bounds.removed_newest_at
    {
        let newest = whole_seconds(newest);
        let _ = writeln!(
            text,
            "Removed by retention: passes with entries up to {newest}. {}",
            checked(report.retention)
        );
        if bounds.removed_entries > 0 {
            let count = bounds.removed_entries;
            let _ = writeln!(text, "Entries still to be removed by retention: {count}.");
        }
    }
    if let Some((compared, expired)) = report.compared {
        let _ = writeln!(
            text,
            "Compared with the export: {compared} seals, of which retention has removed {expired}."
        );
    }
    text + &faults(report)
}

/// How old removed entries must be.
fn checked(retention: Option<Duration>) -> String {
    retention.map_or_else(
        || {
            let least = format_duration(RETENTION_MIN);
            format!("Checked: older than {least}, because audit.retention is not set here.")
        },
        |kept| {
            let kept = format_duration(kept);
            format!("Checked: older than audit.retention, {kept}.")
        },
    )
}

fn faults(report: &AuditReport) -> String {
    let faults = &report.trail.faults;
    if faults.total == 0 {
        return "No faults.\n".to_owned();
    }
    let mut text = format!("Faults: {}.\n", faults.total);
    for fault in &faults.first {
        let _ = writeln!(text, "{}", line(fault));
    }
    text
}

fn line(fault: &TrailFault) -> String {
    let TrailFault {
        kind,
        tenancy,
        number,
        begin,
        end,
    } = fault;
    let seal = number.map(|number| format!(", seal {number}"));
    let seal = seal.unwrap_or_default();
    let tenant = tenant(tenancy);
    format!("tenant {tenant}{seal}, after {begin} up to {end}: {kind}")
}

fn row((tenancy, chain): (&Tenancy, &VerifiedChain)) -> [String; 5] {
    let VerifiedChain {
        first,
        last,
        entries,
    } = chain;
    [
        tenant(tenancy),
        format!("{}-{}", first.number, last.number),
        whole_seconds(first.sealed_at),
        whole_seconds(last.sealed_at),
        entries.to_string(),
    ]
}

fn tenant(tenancy: &Tenancy) -> String {
    if tenancy.is_empty() {
        return NO_TENANT.to_owned();
    }
    let dimensions: Vec<_> = tenancy
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    dimensions.join(",")
}

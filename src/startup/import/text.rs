//! The report for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::app::import::{ImportReport, Verification, VerifyScope};
use crate::domain::import::{Finding, FindingPart};

/// Most parts that are named below one reason.
const NAMED_MAX: usize = 20;

/// The report as lines.
pub(super) fn text(report: &ImportReport) -> String {
    let mut text = String::new();
    kinds(report, &mut text);
    tallies(report, &mut text);
    findings(report, &mut text);
    match &report.verification {
        Some(verification) => verified(verification, report.is_dry_run, &mut text),
        None => text.push_str("Nothing was compared.\n"),
    }
    if report.is_interrupted {
        text.push_str("Stopped before the end: the same command goes on.\n");
    }
    text
}

fn kinds(report: &ImportReport, text: &mut String) {
    let width = report
        .kinds
        .keys()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max(4);
    let imported = if report.is_dry_run {
        "WOULD BE HERE"
    } else {
        "HERE"
    };
    let _ = writeln!(
        text,
        "{:width$}  {:>10}  {imported:>13}  {:>10}",
        "KIND", "SOURCE", "REFUSED"
    );
    for (kind, tally) in &report.kinds {
        let _ = writeln!(
            text,
            "{kind:width$}  {:>10}  {:>13}  {:>10}",
            tally.source, tally.imported, tally.refused
        );
    }
}

fn tallies(report: &ImportReport, text: &mut String) {
    let ImportReport {
        added,
        changed,
        removed,
        unchanged,
        reports,
        references,
        ..
    } = report;
    let begin = if report.is_dry_run {
        "A dry run, nothing is written: "
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "{begin}{added} added, {changed} changed, {removed} removed, {unchanged} unchanged; \
         {reports} reports, {references} references."
    );
}

fn findings(report: &ImportReport, text: &mut String) {
    let mut by_reason: BTreeMap<(bool, String), Vec<&Finding>> = BTreeMap::new();
    for finding in report.findings.listed() {
        let key = (
            !finding.reason.is_refusal(),
            finding.reason.code().to_owned(),
        );
        by_reason.entry(key).or_default().push(finding);
    }
    for ((is_taken_over, code), found) in by_reason {
        let count = report.findings.counts().get(code.as_str()).copied();
        let count = count.unwrap_or(found.len());
        let what = if is_taken_over {
            "Taken over with a difference"
        } else {
            "Refused"
        };
        let advice = found.first().map_or("", |finding| finding.reason.advice());
        let _ = writeln!(text, "\n{what}: {count} ({code})\n  What to do: {advice}");
        for finding in found.iter().take(NAMED_MAX) {
            let _ = writeln!(text, "  {}: {}", place(finding), finding.reason);
        }
        if count > NAMED_MAX {
            let _ = writeln!(text, "  and {} more; -o json lists them", count - NAMED_MAX);
        }
    }
    if report.findings.counts().is_empty() {
        text.push_str("Nothing is refused.\n");
    } else {
        text.push('\n');
    }
}

/// The resource, and which part of it.
fn place(finding: &Finding) -> String {
    let Finding { kind, id, name, .. } = finding;
    let resource = if name.is_empty() {
        format!("{kind} {id}")
    } else {
        format!("{kind} {id} ({name})")
    };
    match &finding.part {
        FindingPart::Resource => resource,
        FindingPart::Report { adapter } => format!("{resource}, report of {adapter}"),
        FindingPart::Reference { ref_type, target } => {
            format!("{resource}, reference {ref_type} to {target}")
        }
    }
}

fn verified(verification: &Verification, is_dry_run: bool, text: &mut String) {
    let Verification {
        scope,
        equal,
        changed_here,
        differing,
        first,
    } = verification;
    let what = match (is_dry_run, scope) {
        (true, _) => "Compared what is unchanged",
        (false, VerifyScope::Changed) => "Compared what was written",
        (false, VerifyScope::All | VerifyScope::Nothing) => "Compared everything",
    };
    let _ = write!(
        text,
        "{what}: {equal} resources are equal, {differing} differ"
    );
    if *changed_here > 0 {
        let _ = write!(text, ", {changed_here} were changed here since");
    }
    text.push_str(".\n");
    for difference in first.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "  {} {}", difference.kind, difference.id);
    }
    if *differing > 0 {
        text.push_str("  What to do: import again with --full, which reads everything again.\n");
    }
}

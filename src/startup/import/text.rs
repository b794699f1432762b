//! The import report for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::app::import::{ImportReport, Verification, VerifyScope};
use crate::domain::import::{FindingPart, ImportFinding, ImportReason};

/// Parts that are named below one reason at most.
const NAMED_MAX: usize = 20;

pub(super) fn text(report: &ImportReport) -> String {
    let mut text = String::new();
    kinds(report, &mut text);
    tallies(report, &mut text);
    findings(report, &mut text);
    match &report.verification {
        Some(verification) => verified(verification, report, &mut text),
        None => text.push_str("Nothing was compared.\n"),
    }
    if report.is_interrupted {
        text.push_str("Stopped before the end: run the same command to continue.\n");
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
    let mut by_reason: BTreeMap<(usize, &str), Vec<&ImportFinding>> = BTreeMap::new();
    for finding in report.findings.listed() {
        let key = (urgency(&finding.reason), finding.reason.code());
        by_reason.entry(key).or_default().push(finding);
    }
    for ((urgency, code), found) in by_reason {
        let count = report.findings.counts().get(code).copied();
        let count = count.unwrap_or(found.len());
        let what = ["Refused", "Imported with a difference", "Left behind"][urgency];
        let advice = found.first().map_or("", |finding| finding.reason.advice());
        let _ = writeln!(text, "\n{what}: {count} ({code})\n  What to do: {advice}");
        for finding in found.iter().take(NAMED_MAX) {
            let _ = writeln!(
                text,
                "  {}: {}",
                location(finding),
                printable(&finding.reason.to_string())
            );
        }
        if count > NAMED_MAX {
            let (rest, listed) = (count - NAMED_MAX, found.len());
            let _ = writeln!(text, "  and {rest} more; -o json lists the first {listed}");
        }
    }
    if report.findings.counts().is_empty() {
        text.push_str("Nothing is refused.\n");
    } else {
        text.push('\n');
    }
}

/// Refusals come first, and findings that need no action last.
fn urgency(reason: &ImportReason) -> usize {
    match reason {
        ImportReason::OrphanReport => 2,
        ImportReason::Href { .. } => 1,
        _ => 0,
    }
}

/// Texts of the source without characters that would move a terminal's cursor.
fn printable(text: &str) -> String {
    let escaped = text.chars().map(|c| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    });
    escaped.collect()
}

/// The resource, and its part.
fn location(finding: &ImportFinding) -> String {
    let ImportFinding { kind, id, name, .. } = finding;
    let resource = if name.is_empty() {
        format!("{kind} {id}")
    } else {
        format!("{kind} {id} ({name})")
    };
    printable(&match &finding.part {
        FindingPart::Resource => resource,
        FindingPart::Report { adapter } => format!("{resource}, report of {adapter}"),
        FindingPart::Reference { ref_type, target } => {
            format!("{resource}, reference {ref_type} to {target}")
        }
    })
}

fn verified(verification: &Verification, report: &ImportReport, text: &mut String) {
    let Verification {
        scope,
        equal,
        equal_in_part,
        older,
        changed_here,
        differing,
        first,
    } = verification;
    let what = match scope {
        _ if report.is_dry_run => "Compared the unchanged resources",
        VerifyScope::Changed => "Compared the written resources",
        VerifyScope::All | VerifyScope::Nothing => "Compared everything",
    };
    let what = if report.is_interrupted {
        "Compared so far"
    } else {
        what
    };
    let _ = write!(
        text,
        "{what}: {equal} resources are equal, {differing} differ"
    );
    for (count, what) in [
        (equal_in_part, "are equal except for refused parts"),
        (
            older,
            "have an older state here, because the newer one is refused",
        ),
        (changed_here, "were changed or removed here since"),
    ] {
        if *count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text.push_str(".\n");
    for difference in first.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "  {} {}", difference.kind, difference.id);
    }
    if *differing > 0 {
        text.push_str("  What to do: import again with --full, which reads everything again.\n");
    }
}

//! The import report for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::app::import::{ImportReport, KindTally, Verification, VerifyScope};
use crate::domain::import::{FindingPart, ImportFinding};

#[derive(Serialize)]
struct ReportView<'a> {
    dry_run: bool,
    interrupted: bool,
    kinds: BTreeMap<&'a str, KindView>,
    added: usize,
    changed: usize,
    removed: usize,
    unchanged: usize,
    reports: usize,
    references: usize,
    refused: usize,
    /// By the code of the reason.
    findings: &'a BTreeMap<&'static str, usize>,
    /// The first ones of each reason.
    listed: Vec<FindingView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<VerificationView<'a>>,
}

#[derive(Serialize)]
struct KindView {
    source: usize,
    imported: usize,
    refused: usize,
}

#[derive(Serialize)]
struct FindingView<'a> {
    reason: &'static str,
    message: String,
    advice: &'static str,
    refused: bool,
    kind: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ref_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
}

#[derive(Serialize)]
struct VerificationView<'a> {
    scope: &'static str,
    equal: usize,
    equal_in_part: usize,
    older: usize,
    changed_here: usize,
    differing: usize,
    /// The first ones.
    differences: Vec<DifferenceView<'a>>,
}

#[derive(Serialize)]
struct DifferenceView<'a> {
    kind: &'a str,
    id: String,
}

pub(super) fn json(report: &ImportReport) -> anyhow::Result<String> {
    let kinds = report.kinds.iter();
    let findings = &report.findings;
    let view = ReportView {
        dry_run: report.is_dry_run,
        interrupted: report.is_interrupted,
        kinds: kinds
            .map(|(kind, tally)| (kind.as_str(), kind_view(*tally)))
            .collect(),
        added: report.added,
        changed: report.changed,
        removed: report.removed,
        unchanged: report.unchanged,
        reports: report.reports,
        references: report.references,
        refused: findings.refused(),
        findings: findings.counts(),
        listed: findings.listed().iter().map(finding_view).collect(),
        verification: report.verification.as_ref().map(verification_view),
    };
    Ok(serde_json::to_string_pretty(&view)? + "\n")
}

fn kind_view(tally: KindTally) -> KindView {
    let KindTally {
        source,
        imported,
        refused,
    } = tally;
    KindView {
        source,
        imported,
        refused,
    }
}

fn finding_view(finding: &ImportFinding) -> FindingView<'_> {
    let (mut adapter, mut ref_type, mut target) = (None, None, None);
    match &finding.part {
        FindingPart::Resource => {}
        FindingPart::Report { adapter: name } => adapter = Some(name.as_str()),
        FindingPart::Reference {
            ref_type: name,
            target: id,
        } => {
            ref_type = Some(name.as_str());
            target = Some(id.as_str());
        }
    }
    FindingView {
        reason: finding.reason.code(),
        message: finding.reason.to_string(),
        advice: finding.reason.advice(),
        refused: finding.reason.is_refusal(),
        kind: &finding.kind,
        id: &finding.id,
        name: &finding.name,
        adapter,
        ref_type,
        target,
    }
}

fn verification_view(verification: &Verification) -> VerificationView<'_> {
    let differences = verification.first.iter().map(|one| DifferenceView {
        kind: &one.kind,
        id: one.id.to_string(),
    });
    VerificationView {
        scope: match verification.scope {
            VerifyScope::All => "all",
            VerifyScope::Changed => "changed",
            VerifyScope::Nothing => "none",
        },
        equal: verification.equal,
        equal_in_part: verification.equal_in_part,
        older: verification.older,
        changed_here: verification.changed_here,
        differing: verification.differing,
        differences: differences.collect(),
    }
}

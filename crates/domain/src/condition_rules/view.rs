//! The part of a resource and its reports that rules see (`docs/guides/derived-conditions.md`).

use hyperfleet_expressions::{CelValue, DataSize, Evaluation, MASK, hides};

use super::{Data, Facts, Paths, RuleInput};
use crate::{ConditionStatus, ReportState, moment};

/// The variables of every rule.
pub(super) const VARIABLES: &[&str] = &["statuses", "resource"];

/// Checks the size of the input.
///
/// # Errors
///
/// The part that is too large.
pub(super) fn fits(subject: &RuleInput<'_>) -> Result<(), String> {
    let mut size = DataSize::default();
    size.add_members(&subject.facts.spec);
    for report in subject.reports {
        for condition in &report.conditions {
            let texts = [&condition.reason, &condition.message];
            let texts: usize = texts.into_iter().flatten().map(String::len).sum();
            size.add_texts(5, texts + condition.kind.len());
        }
    }
    for data in subject.facts.data.values() {
        match data {
            Data::Read(data) => size.add_members(data),
            Data::TooLarge => {
                return Err(format!(
                    "the data of a report is longer than {} bytes",
                    Data::BYTES_MAX
                ));
            }
        }
    }
    match size.excess() {
        Some(excess) => Err(format!("the resource and its reports hold {excess}")),
        None => Ok(()),
    }
}

/// An evaluation with everything that rules see.
pub(super) fn evaluation<'a>(subject: &RuleInput<'a>, paths: &'a Paths) -> Evaluation<'a> {
    Evaluation::new([
        ("statuses", statuses(subject)),
        ("resource", resource(subject, paths)),
    ])
}

/// One entry for each report without `Unknown`, in the order of the adapters' names.
fn statuses<'a>(subject: &RuleInput<'a>) -> CelValue<'a> {
    let is_certain = |report: &&ReportState| {
        let mut statuses = report.conditions.iter().map(|c| c.status);
        statuses.all(|status| status != ConditionStatus::Unknown)
    };
    let mut reports: Vec<_> = subject.reports.iter().filter(is_certain).collect();
    reports.sort_by(|a, b| a.adapter.cmp(&b.adapter));
    let statuses = reports
        .into_iter()
        .map(|report| status(report, subject.facts));
    CelValue::list(statuses)
}

fn status<'a>(report: &'a ReportState, facts: &'a Facts) -> CelValue<'a> {
    let conditions = report.conditions.iter().map(|condition| {
        let text = |text: &'a Option<String>| CelValue::text(text.as_deref().unwrap_or_default());
        CelValue::map([
            ("message", text(&condition.message)),
            ("reason", text(&condition.reason)),
            ("status", CelValue::text(condition.status.into_str())),
            ("type", CelValue::text(&condition.kind)),
        ])
    });
    let data = match facts.data.get(&report.adapter) {
        Some(Data::Read(data)) => CelValue::masked_members(data, 0),
        Some(Data::TooLarge) | None => CelValue::map([]),
    };
    CelValue::map([
        ("adapter", CelValue::text(&report.adapter)),
        ("conditions", CelValue::list(conditions)),
        ("data", data),
        (
            "observed_generation",
            CelValue::double(f64::from(report.observed_generation)),
        ),
    ])
}

/// The resource without its conditions and references.
fn resource<'a>(subject: &RuleInput<'a>, paths: &'a Paths) -> CelValue<'a> {
    let RuleInput { state, facts, .. } = *subject;
    let time = |at| CelValue::text(moment::rfc3339(at));
    let id = || CelValue::text(state.id.to_string());
    let labels = || texts(facts.labels.iter());
    let mut members = vec![
        ("ID", id()),
        ("CreatedTime", time(facts.created_at)),
        ("UpdatedTime", time(state.updated_at)),
        ("created_by", CelValue::text(&facts.created_by)),
        ("created_time", time(facts.created_at)),
        ("generation", CelValue::double(f64::from(state.generation))),
        ("href", CelValue::text(paths.href(state))),
        ("id", id()),
        ("kind", CelValue::text(&state.kind)),
        ("labels", labels()),
        ("metadata", CelValue::map([("labels", labels())])),
        ("name", CelValue::text(state.name.as_str())),
        ("spec", CelValue::masked_members(&facts.spec, 1)),
        ("tenancy", texts(facts.tenancy.iter())),
        ("updated_by", CelValue::text(&facts.updated_by)),
        ("updated_time", time(state.updated_at)),
    ];
    if let (Some(owner), Some((kind, href))) = (state.owner, paths.owner(state)) {
        members.push(("owner_href", CelValue::text(href)));
        members.push(("owner_id", CelValue::text(owner.to_string())));
        members.push(("owner_kind", CelValue::text(kind)));
    }
    if let Some(deletion) = &state.deletion {
        members.push(("deleted_by", CelValue::text(&deletion.by)));
        members.push(("deleted_time", time(deletion.at)));
    }
    CelValue::map(members)
}

fn texts<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> CelValue<'a> {
    CelValue::map(pairs.map(|(name, text)| {
        let visible = if hides(name) { MASK } else { text };
        (name.as_str(), CelValue::text(visible))
    }))
}

//! What rules see of a resource and its reports (domain rule 6.3).

use super::mask;
use super::value::{self, Boxed};
use super::{Data, Facts, Paths, Subject};
use crate::domain::{ConditionStatus, ReportState, moment};

/// Most values that rules may be given at once, in the resource and all reports together.
pub const VALUES_MAX: usize = 20_000;
/// Most texts that rules may be given at once, in bytes.
pub const TEXTS_BYTES_MAX: usize = 1 << 20;

/// Checks that there is not too much to look at.
///
/// # Errors
///
/// What there is too much of.
pub(super) fn fits(subject: &Subject<'_>) -> Result<(), String> {
    let mut size = Size::default();
    size.members(&subject.facts.spec);
    for report in subject.reports {
        for condition in &report.conditions {
            let texts = [&condition.reason, &condition.message];
            let texts: usize = texts.into_iter().flatten().map(String::len).sum();
            size.values += 5;
            size.bytes += texts + condition.kind.len();
        }
    }
    for data in subject.facts.data.values() {
        match data {
            Data::Read(data) => size.members(data),
            Data::TooLarge => {
                return Err(format!(
                    "the data of a report is longer than {} bytes",
                    Data::BYTES_MAX
                ));
            }
        }
    }
    if size.values > VALUES_MAX || size.bytes > TEXTS_BYTES_MAX {
        return Err(format!(
            "the resource and its reports hold more than {VALUES_MAX} values or {TEXTS_BYTES_MAX} bytes of text"
        ));
    }
    Ok(())
}

#[derive(Default)]
struct Size {
    values: usize,
    bytes: usize,
}

impl Size {
    fn members(&mut self, members: &serde_json::Map<String, serde_json::Value>) {
        for (name, value) in members {
            self.bytes += name.len();
            self.value(value);
        }
    }

    fn value(&mut self, value: &serde_json::Value) {
        self.values += 1;
        match value {
            serde_json::Value::String(text) => self.bytes += text.len(),
            serde_json::Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            serde_json::Value::Object(members) => self.members(members),
            _ => {}
        }
    }
}

/// One entry for each report that does not say `Unknown` anywhere, in the order of the adapters'
/// names.
pub(super) fn statuses<'a>(subject: &Subject<'a>) -> Boxed<'a> {
    let is_certain = |report: &&ReportState| {
        let mut statuses = report.conditions.iter().map(|c| c.status);
        statuses.all(|status| status != ConditionStatus::Unknown)
    };
    let mut reports: Vec<_> = subject.reports.iter().filter(is_certain).collect();
    reports.sort_by(|a, b| a.adapter.cmp(&b.adapter));
    let statuses = reports
        .into_iter()
        .map(|report| status(report, subject.facts));
    value::list(statuses)
}

fn status<'a>(report: &'a ReportState, facts: &'a Facts) -> Boxed<'a> {
    let conditions = report.conditions.iter().map(|condition| {
        let text = |text: &'a Option<String>| value::text(text.as_deref().unwrap_or_default());
        value::map([
            ("message", text(&condition.message)),
            ("reason", text(&condition.reason)),
            ("status", value::text(condition.status.into_str())),
            ("type", value::text(&condition.kind)),
        ])
    });
    let data = match facts.data.get(&report.adapter) {
        Some(Data::Read(data)) => value::masked_members(data, 0),
        Some(Data::TooLarge) | None => value::map([]),
    };
    value::map([
        ("adapter", value::text(&report.adapter)),
        ("conditions", value::list(conditions)),
        ("data", data),
        (
            "observed_generation",
            value::double(f64::from(report.observed_generation)),
        ),
    ])
}

/// The resource without its conditions and links.
pub(super) fn resource<'a>(subject: &Subject<'a>, paths: &'a Paths) -> Boxed<'a> {
    let Subject { state, facts, .. } = *subject;
    let time = |at| value::owned_text(moment::rfc3339(at));
    let id = || value::owned_text(state.id.to_string());
    let labels = || texts(facts.labels.iter());
    let mut members = vec![
        ("ID", id()),
        ("CreatedTime", time(facts.created_at)),
        ("UpdatedTime", time(state.updated_at)),
        ("created_by", value::text(&facts.created_by)),
        ("created_time", time(facts.created_at)),
        ("generation", value::double(f64::from(state.generation))),
        ("href", value::owned_text(paths.href(state))),
        ("id", id()),
        ("kind", value::text(&state.kind)),
        ("labels", labels()),
        ("metadata", value::map([("labels", labels())])),
        ("name", value::text(state.name.as_str())),
        ("spec", value::masked_members(&facts.spec, 1)),
        ("tenancy", texts(facts.tenancy.iter())),
        ("updated_by", value::text(&facts.updated_by)),
        ("updated_time", time(state.updated_at)),
    ];
    if let (Some(owner), Some((kind, href))) = (state.owner, paths.owner(state)) {
        members.push(("owner_href", value::owned_text(href)));
        members.push(("owner_id", value::owned_text(owner.to_string())));
        members.push(("owner_kind", value::text(kind)));
    }
    if let Some(deletion) = &state.deletion {
        members.push(("deleted_by", value::text(&deletion.by)));
        members.push(("deleted_time", time(deletion.at)));
    }
    value::map(members)
}

fn texts<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Boxed<'a> {
    value::map(pairs.map(|(name, text)| {
        let shown = if mask::hides(name) { mask::MASK } else { text };
        (name.as_str(), value::text(shown))
    }))
}

//! Reports of adapters, each imported or refused separately.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::document::{document, json, raw};
use super::row::ReportRow;
use hyperfleet_domain::{Metadata, Report, ReportedCondition, moment};

/// Separates the reports that pass the rules from the adapters of the others, each with the broken rule.
pub(super) fn reports(rows: Vec<ReportRow>) -> (Vec<ReportRow>, Vec<(String, String)>) {
    let (mut sound, mut refused) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let adapter = row.adapter.clone();
        let report = match sound.len() {
            Report::ADAPTERS_MAX => Err("too many adapters report on the resource".to_owned()),
            _ => report(row),
        };
        match report {
            Ok(report) => sound.push(report),
            Err(why) => refused.push((adapter, why)),
        }
    }
    (sound, refused)
}

fn report(mut row: ReportRow) -> Result<ReportRow, String> {
    at_most(
        "bytes of the adapter's name",
        row.adapter.len(),
        Report::ADAPTER_BYTES_MAX,
    )?;
    if row.adapter.is_empty() {
        return Err("the adapter has no name".to_owned());
    }
    if !(1..=i64::from(i32::MAX)).contains(&row.observed_generation) {
        return Err(format!(
            "impossible value: observed_generation is {}",
            row.observed_generation
        ));
    }
    row.created_time = row.created_time.or_else(|| row.last_report_time.clone());
    for time in [&row.created_time, &row.last_report_time] {
        let time = time.as_deref().unwrap_or("null");
        moment::parse(time).ok_or_else(|| format!("impossible value: a time is {time}"))?;
    }
    row.conditions = conditions(&row.conditions)?;
    let data = row.data.unwrap_or_else(|| raw(&serde_json::json!({})));
    document(&data).map_err(|why| format!("data: {why}"))?;
    row.data = Some(data);
    if let Some(metadata) = &mut row.metadata {
        let known: Metadata = json(metadata).map_err(|why| format!("metadata: {why}"))?;
        *metadata = raw(&known);
    }
    Ok(row)
}

/// The conditions as this service stores them.
fn conditions(text: &RawValue) -> Result<Box<RawValue>, String> {
    let conditions = json(text).map_err(|why| format!("conditions: {why}"))?;
    let conditions: Vec<ReportedCondition> = conditions;
    let texts = |c: &ReportedCondition| {
        let optional = [&c.reason, &c.message].into_iter().flatten();
        c.kind.len() + optional.map(String::len).sum::<usize>()
    };
    let bytes = conditions.iter().map(texts).sum();
    at_most("conditions", conditions.len(), Report::CONDITIONS_MAX)?;
    at_most(
        "bytes of text in conditions",
        bytes,
        Report::TEXTS_BYTES_MAX,
    )?;
    let types: BTreeSet<_> = conditions.iter().map(|c| &c.kind).collect();
    if types.len() != conditions.len() {
        return Err("a condition type occurs twice".to_owned());
    }
    Ok(raw(&conditions))
}

fn at_most(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count > most {
        return Err(format!("it has {count} {what}, more than {most}"));
    }
    Ok(())
}

//! Reports of adapters, each imported or refused by itself.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::ImportReason;
use super::document::{document, json};
use super::row::SourceReport;
use crate::domain::{Metadata, Report, ReportState, ReportedCondition, moment};

/// A report that passed the rules, ready to be stored.
#[derive(Debug)]
pub struct ImportedReport {
    /// The report without its data.
    pub state: ReportState,
    /// The data exactly as in the source.
    pub data: Box<RawValue>,
    pub metadata: Option<Metadata>,
}

type Sorted = (Vec<ImportedReport>, Vec<(String, ImportReason)>);

/// Reads the reports of a resource: those that pass the rules, and the adapters of the others.
pub(super) fn reports(text: &str) -> Result<Sorted, ImportReason> {
    let rows: Vec<Box<RawValue>> = json(text).map_err(ImportReason::Report)?;
    let (mut sound, mut refused) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let row: SourceReport<'_> = serde_json::from_str(row.get())
            .map_err(|error| ImportReason::Report(error.to_string()))?;
        let adapter = row.adapter.clone();
        let report = if sound.len() == Report::ADAPTERS_MAX {
            Err(format!(
                "{} adapters report on the resource already",
                sound.len()
            ))
        } else {
            report(row)
        };
        match report {
            Ok(report) => sound.push(report),
            Err(why) => refused.push((adapter, ImportReason::Report(why))),
        }
    }
    Ok((sound, refused))
}

fn report(row: SourceReport<'_>) -> Result<ImportedReport, String> {
    let bytes = row.adapter.len();
    if !(1..=Report::ADAPTER_BYTES_MAX).contains(&bytes) {
        let most = Report::ADAPTER_BYTES_MAX;
        return Err(format!(
            "the adapter's name has {bytes} bytes: 1 to {most} are allowed"
        ));
    }
    let time = |column: &str, text: Option<&str>| {
        let text = text.unwrap_or("null");
        moment::parse(text).ok_or_else(|| format!("{column} is impossible: {text}"))
    };
    let reported = row.last_report_time.as_deref();
    let created = row.created_time.as_deref().or(reported);
    let observed = row.observed_generation;
    let state = ReportState {
        observed_generation: i32::try_from(observed)
            .ok()
            .filter(|generation| *generation >= 1)
            .ok_or_else(|| format!("observed_generation is impossible: {observed}"))?,
        created_at: time("created_time", created)?,
        reported_at: time("last_report_time", reported)?,
        conditions: conditions(row.conditions)?,
        adapter: row.adapter,
    };
    let data = row.data.map_or("{}", RawValue::get);
    let (_, data) = document(data.to_owned()).map_err(|why| format!("data: {why}"))?;
    let metadata = row
        .metadata
        .map(|metadata| json::<Metadata>(metadata.get()));
    let metadata = metadata
        .transpose()
        .map_err(|why| format!("metadata: {why}"))?;
    Ok(ImportedReport {
        state,
        data,
        metadata,
    })
}

fn conditions(raw: &RawValue) -> Result<Vec<ReportedCondition>, String> {
    let conditions: Vec<ReportedCondition> =
        json(raw.get()).map_err(|why| format!("conditions: {why}"))?;
    let count = conditions.len();
    if count > Report::CONDITIONS_MAX {
        let most = Report::CONDITIONS_MAX;
        return Err(format!("it has {count} conditions, more than {most}"));
    }
    let texts = |c: &ReportedCondition| {
        let optional = [&c.reason, &c.message].into_iter().flatten();
        c.kind.len() + optional.map(String::len).sum::<usize>()
    };
    let bytes: usize = conditions.iter().map(texts).sum();
    if bytes > Report::TEXTS_BYTES_MAX {
        let most = Report::TEXTS_BYTES_MAX;
        return Err(format!(
            "its conditions have {bytes} bytes of text, more than {most}"
        ));
    }
    let types: BTreeSet<_> = conditions.iter().map(|c| &c.kind).collect();
    if types.len() != count {
        return Err("a condition type is there twice".to_owned());
    }
    Ok(conditions)
}

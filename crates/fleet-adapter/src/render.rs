//! `fleet-adapter render`: the units of a resource, without the API and etcd.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use hyperfleet_fleet_model::unit::Options;
use hyperfleet_server_kit::files;
use hyperfleet_server_kit::settings::OutputFormat;
use serde_json::{Value, json};

use crate::command::RenderArgs;
use crate::domain::DesiredUnit;
use crate::workloads::{RenderInput, Rendered, Workloads};

/// Longest document, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Id of a resource that has none yet.
const NO_ID: &str = "00000000-0000-7000-8000-000000000000";

/// The units that a resource would have, as text.
///
/// # Errors
///
/// Unusable documents; workloads that are invalid for the resource.
pub fn render<S: clap::Args>(
    workloads: &Workloads,
    args: &RenderArgs<S>,
) -> anyhow::Result<String> {
    let resource = document(&args.resource)?;
    let owner = args.owner.as_deref().map(document).transpose()?;
    rendered(
        workloads,
        &resource,
        &owner.unwrap_or_default(),
        args.output,
    )
}

fn rendered(
    workloads: &Workloads,
    resource: &Value,
    owner: &Value,
    format: OutputFormat,
) -> anyhow::Result<String> {
    let member = |name: &str| resource.get(name).and_then(Value::as_str);
    let kind = member("kind").context("the resource has no kind")?;
    let id = member("id").unwrap_or(NO_ID);
    let subject = RenderInput {
        kind,
        id,
        path: member("href").unwrap_or(id),
        resource,
        owner,
    };
    let units = match workloads.render(&subject) {
        Ok(Rendered::NotApplicable) => Vec::new(),
        Ok(Rendered::Units(workloads)) => workloads.into_iter().flat_map(|w| w.units).collect(),
        Err(error) => bail!("{}: {}", error.reason, error.message),
    };
    match format {
        OutputFormat::Text if units.is_empty() => Ok(format!("# no units for this {kind}\n")),
        OutputFormat::Text => {
            let texts: anyhow::Result<Vec<_>> = units.iter().map(as_text).collect();
            Ok(texts?.join("\n"))
        }
        OutputFormat::Json => {
            let units: anyhow::Result<Vec<_>> = units.iter().map(as_json).collect();
            Ok(serde_json::to_string_pretty(&json!({ "units": units? }))? + "\n")
        }
    }
}

fn as_text(unit: &DesiredUnit) -> anyhow::Result<String> {
    Ok(format!("# {}\n{}", unit.name, file(unit)?))
}

fn as_json(unit: &DesiredUnit) -> anyhow::Result<Value> {
    Ok(json!({ "name": unit.name, "file": file(unit)? }))
}

fn file(unit: &DesiredUnit) -> anyhow::Result<String> {
    Ok(Options::new(&unit.options)?.text())
}

/// A document in a file, or on standard input. JSON is also YAML.
fn document(path: &Path) -> anyhow::Result<Value> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        let mut input = std::io::stdin().lock().take(DOCUMENT_BYTES_MAX);
        input.read_to_string(&mut text).map(|_| text)
    } else {
        files::read_text(path, DOCUMENT_BYTES_MAX)
    };
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let value: Value = yaml_serde::from_str(&text)
        .with_context(|| format!("{} is neither JSON nor YAML", path.display()))?;
    if !value.is_object() {
        bail!("{} is not a resource: give an object", path.display());
    }
    Ok(value)
}

#[cfg(test)]
#[path = "tests/render.rs"]
mod tests;

//! From configured workloads to the units of one resource.

use std::collections::BTreeSet;
use std::time::Duration;

use hyperfleet_expressions::{CelValue, DataSize, Evaluation, Expression, Meter};
use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitName, UnitOption, file, validity};
use hyperfleet_server_kit::errors::ErrorList;
use serde_json::Value;

use super::VARIABLES;
use super::config::{FILE_BYTES_MAX, WORKLOADS_MAX, WorkloadConfig};
use super::template::Template;
use super::values::Usage;
use crate::domain::{DesiredUnit, DesiredWorkload, Ownership, SECTION};

pub const REPLICAS_MAX: u32 = 1000;
/// Characters of an id that [`short_id`] returns.
const SHORT_ID_CHARACTERS: usize = 8;

/// The variables of expressions.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    pub kind: &'a str,
    pub id: &'a str,
    /// Path of the resource in the API.
    pub path: &'a str,
    /// As the API shows it.
    pub resource: &'a Value,
    /// Its parent; `null` if it has none.
    pub owner: &'a Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// No workload of its kind applies.
    NotApplicable,
    /// By workload.
    Units(Vec<DesiredWorkload>),
}

/// Why a resource's units cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrenderable {
    /// One word for programs.
    pub reason: &'static str,
    /// What is wrong with which part of which workload.
    pub message: String,
}

/// All workloads, compiled.
#[derive(Debug)]
pub struct Workloads {
    adapter: String,
    sorted: Vec<Workload>,
}

#[derive(Debug)]
struct Workload {
    kind: String,
    /// Position among those of its kind, from 1.
    number: u32,
    when: Expression,
    replicas: Expression,
    unit: Template,
    options: Vec<(String, String, Template)>,
    max_unavailable: u32,
    min_ready: Duration,
}

impl Workloads {
    /// Compiles the workloads of an adapter.
    ///
    /// # Errors
    /// Every fault, with its setting.
    pub fn compile(adapter: &str, configs: &[WorkloadConfig]) -> anyhow::Result<Self> {
        let mut faults = ErrorList::default();
        if configs.len() > WORKLOADS_MAX {
            faults.0.push(format!(
                "fleet.adapter has {} workloads; {WORKLOADS_MAX} at most",
                configs.len()
            ));
        }
        let mut sorted: Vec<Workload> = Vec::new();
        for (position, config) in configs.iter().enumerate() {
            let of_kind = configs[..position]
                .iter()
                .filter(|other| other.kind == config.kind);
            let number = u32::try_from(of_kind.count() + 1).unwrap_or(u32::MAX);
            match compile_one(config, number) {
                Ok(workload) => sorted.push(workload),
                Err(fault) => {
                    let text = format!("fleet.adapter.workloads[{position}]: {fault}");
                    faults.0.push(text);
                }
            }
        }
        faults.refuse()?;
        let adapter = adapter.to_owned();
        Ok(Self { adapter, sorted })
    }

    /// The kinds that have workloads.
    pub fn kinds(&self) -> BTreeSet<&str> {
        self.sorted
            .iter()
            .map(|workload| workload.kind.as_str())
            .collect()
    }

    /// The units that a resource needs.
    ///
    /// # Errors
    /// An expression that cannot be evaluated, a value that a unit file cannot contain, or a unit that fleet
    /// would refuse.
    pub fn render(&self, subject: &RenderInput<'_>) -> Result<Rendered, Unrenderable> {
        let of_kind = self
            .sorted
            .iter()
            .filter(|workload| workload.kind == subject.kind);
        let mut applying = Vec::new();
        let mut names = BTreeSet::new();
        for workload in of_kind {
            let Some(units) = workload.render(&self.adapter, subject)? else {
                continue;
            };
            for unit in &units.units {
                if !names.insert(unit.name.clone()) {
                    let message = format!(
                        "workload {} of {}: two replicas are called {}: use ${{index}} in `unit`",
                        workload.number, workload.kind, unit.name
                    );
                    return Err(Unrenderable {
                        reason: "InvalidUnit",
                        message,
                    });
                }
            }
            applying.push(units);
        }
        Ok(if applying.is_empty() {
            Rendered::NotApplicable
        } else {
            Rendered::Units(applying)
        })
    }
}

fn compile_one(config: &WorkloadConfig, number: u32) -> Result<Workload, String> {
    if config.kind.is_empty() {
        return Err("has no kind: set `kind`, for instance to NodePool".to_owned());
    }
    if config.max_unavailable == 0 {
        return Err(
            "has `max_unavailable: 0`, with which no update could begin: give 1 or more".to_owned(),
        );
    }
    let expression = |name: &str, text: &str| {
        let compiled = Expression::compile(text, &VARIABLES);
        compiled.map_err(|fault| format!("`{name}` {fault}"))
    };
    let unit = Template::compile(&config.unit, |_| Usage::Name);
    Ok(Workload {
        kind: config.kind.clone(),
        number,
        when: expression("when", &config.when)?,
        replicas: expression("replicas", &config.replicas)?,
        unit: unit.map_err(|fault| format!("`unit` {fault}"))?,
        options: compile_file(&config.file)?,
        max_unavailable: config.max_unavailable,
        min_ready: Duration::from_secs(config.min_ready_seconds),
    })
}

/// The options of a file with expressions in their values. Expressions elsewhere are refused: a value can
/// become neither a section nor the name of an option.
fn compile_file(text: &str) -> Result<Vec<(String, String, Template)>, String> {
    if text.len() > FILE_BYTES_MAX {
        return Err(format!(
            "`file` has {} bytes; {FILE_BYTES_MAX} at most",
            text.len()
        ));
    }
    let options = file::parse(text.as_bytes()).map_err(|fault| format!("`file`: {fault}"))?;
    if options.is_empty() {
        return Err("`file` has no option: write a unit file".to_owned());
    }
    let mut compiled = Vec::new();
    for UnitOption {
        section,
        name,
        value,
    } in options
    {
        if section.contains("${") || name.contains("${") {
            return Err(format!(
                "`file` has an expression in [{section}] {name}: only values may have them"
            ));
        }
        if section == SECTION {
            return Err(format!(
                "`file` has the section [{SECTION}], which the adapter writes"
            ));
        }
        if section == "X-Fleet" && name == "Global" {
            return Err(
                "`file` has Global: a workload runs on as many machines as it has replicas"
                    .to_owned(),
            );
        }
        // Expressions see one line: the beginning of a further line could have a meaning for systemd.
        let value = if value.contains("${") {
            value.replace("\\\n", " ")
        } else {
            value
        };
        let template = Template::compile(&value, |before| Usage::of(&section, &name, before))
            .map_err(|fault| format!("`file`: {name} {fault}"))?;
        compiled.push((section, name, template));
    }
    Ok(compiled)
}

impl Workload {
    fn render(
        &self,
        adapter: &str,
        subject: &RenderInput<'_>,
    ) -> Result<Option<DesiredWorkload>, Unrenderable> {
        let fault = |reason: &'static str, part: &str, what: String| Unrenderable {
            reason,
            message: format!("workload {} of {}: {part}: {what}", self.number, self.kind),
        };
        let failed = |part: &str, what: String| fault("TemplateFailed", part, what);
        let (resource, owner) = (desired(subject.resource), desired(subject.owner));
        let mut size = DataSize::default();
        size.add(&resource);
        size.add(&owner);
        if let Some(excess) = size.excess() {
            return Err(failed("values", excess));
        }
        let mut evaluation = Evaluation::new([
            ("resource", CelValue::masked(&resource)),
            ("owner", CelValue::masked(&owner)),
            ("short_id", CelValue::text(short_id(subject.id))),
            ("index", CelValue::int(0)),
        ]);
        let applies = evaluation.run_bool(&self.when, &Meter::default());
        if !applies.map_err(|what| failed("when", what))? {
            return Ok(None);
        }
        let replicas = evaluation.run_integer(&self.replicas, &Meter::default());
        let replicas = replicas.map_err(|what| failed("replicas", what))?;
        let replicas = u32::try_from(replicas)
            .ok()
            .filter(|count| *count <= REPLICAS_MAX);
        let replicas = replicas.ok_or_else(|| {
            fault(
                "InvalidReplicas",
                "replicas",
                format!("give 0 to {REPLICAS_MAX}"),
            )
        })?;
        let mut units = Vec::new();
        for index in 1..=replicas {
            evaluation.set("index", CelValue::int(index.into()));
            let name = self.unit.render(&mut evaluation, &Meter::default());
            let name = name.map_err(|what| failed("unit", what))?;
            let unit = self.unit(adapter, subject, &mut evaluation, (index, name))?;
            units.push(unit);
        }
        Ok(Some(DesiredWorkload {
            number: self.number,
            max_unavailable: self.max_unavailable,
            min_ready: self.min_ready,
            units,
        }))
    }

    fn unit(
        &self,
        adapter: &str,
        subject: &RenderInput<'_>,
        evaluation: &mut Evaluation<'_>,
        (index, name): (u32, String),
    ) -> Result<DesiredUnit, Unrenderable> {
        let fault = |reason: &'static str, what: String| Unrenderable {
            reason,
            message: format!("workload {} of {}: {name}: {what}", self.number, self.kind),
        };
        let invalid = |what: String| fault("InvalidUnit", what);
        let parsed = UnitName::parse(name.as_str()).map_err(|what| invalid(what.to_string()))?;
        let launched = DesiredState::Launched.check(&parsed);
        launched.map_err(|what| invalid(what.to_string()))?;
        let meter = Meter::default();
        let mut options = Vec::with_capacity(self.options.len() + 5);
        for (section, option, template) in &self.options {
            let value = template.render(evaluation, &meter);
            let value =
                value.map_err(|what| fault("TemplateFailed", format!("{option}: {what}")))?;
            options.push(UnitOption::new(section, option, &value));
        }
        let owner = Ownership {
            adapter: adapter.to_owned(),
            resource: subject.id.to_owned(),
            path: subject.path.to_owned(),
            workload: self.number,
            index,
        };
        options.extend(owner.options());
        let checked = Options::new(&options).map_err(|what| invalid(what.to_string()))?;
        validity::check(&checked).map_err(|what| invalid(what.to_string()))?;
        Ok(DesiredUnit {
            index,
            hash: checked.hash(),
            options: checked.list().to_vec(),
            name,
        })
    }
}

/// A resource without its status: units derived from the status would change with each report, without a change
/// of the resource.
fn desired(document: &Value) -> Value {
    let mut document = document.clone();
    if let Value::Object(members) = &mut document {
        members.remove("status");
    }
    document
}

/// The last characters of an id, which differ between resources made at the same time. Ids begin with the time
/// (UUID version 7).
fn short_id(id: &str) -> String {
    let characters: Vec<char> = id.chars().filter(char::is_ascii_alphanumeric).collect();
    let start = characters.len().saturating_sub(SHORT_ID_CHARACTERS);
    characters[start..].iter().collect()
}

#[cfg(test)]
#[path = "tests/render.rs"]
mod tests;

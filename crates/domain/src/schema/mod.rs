//! Checks specs against the schema of their kind (`docs/reference/configuration.md`).
//!
//! ```text
//! file ─▶ SchemaDocument ─ compile("ClusterSpec") ─▶ SpecSchema ─ check(spec) ─▶ violations
//!          OpenAPI 3.0 is turned into JSON Schema once, at start
//! ```

mod keywords;
mod openapi30;
mod violations;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator, draft202012};
use serde_json::{Map, Value, json};

use super::{Constraint, Violation, Violations, excerpt};
pub use keywords::{COMPONENTS, find};

/// The `components.schemas` of an OpenAPI document, as JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaDocument {
    schemas: Arc<Map<String, Value>>,
    /// The unconverted components.
    originals: Arc<Map<String, Value>>,
}

/// Why a document is unusable, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSchema(String);

/// One kind's schema, ready for use. Cheap to clone.
#[derive(Clone)]
pub struct SpecSchema(Arc<Compiled>);

struct Compiled {
    name: String,
    schemas: Arc<Map<String, Value>>,
    originals: Arc<Map<String, Value>>,
    validator: Validator,
}

impl SchemaDocument {
    /// Reads an OpenAPI 3.0 or 3.1 document.
    ///
    /// # Errors
    ///
    /// It is not one. Its components are checked when they are compiled.
    pub fn parse(mut document: Value) -> Result<Self, InvalidSchema> {
        let version = document.get("openapi").cloned().unwrap_or_default();
        let is_version = |prefix: &str| version.as_str().is_some_and(|v| v.starts_with(prefix));
        let is_30 = is_version("3.0.");
        if !is_30 && !is_version("3.1.") {
            return Err(InvalidSchema(format!(
                "it is not an OpenAPI document: its `openapi` must say \"3.0.…\" or \"3.1.…\", not {version}"
            )));
        }
        let components = document.get_mut("components").map(Value::take);
        let mut components = members(components, "components")?;
        let mut schemas = members(components.remove("schemas"), "components.schemas")?;
        if let Some(name) = schemas.keys().find(|name| !is_name(name)) {
            return Err(InvalidSchema(format!(
                "the component \"{}\" must be renamed: letters, digits, \".\", \"-\" and \"_\" may be in names",
                excerpt(name)
            )));
        }
        let originals = Arc::new(schemas.clone());
        if is_30 {
            schemas.values_mut().for_each(openapi30::convert);
        }
        Ok(Self {
            schemas: Arc::new(schemas),
            originals,
        })
    }

    /// The schema of that name; `None` if the document has none.
    ///
    /// # Errors
    ///
    /// It is not a schema, or has a reference out of the document.
    pub fn compile(&self, name: &str) -> Result<Option<SpecSchema>, InvalidSchema> {
        let Some(schema) = self.schemas.get(name) else {
            return Ok(None);
        };
        let invalid = |why: String, at: String| {
            let place = match &*at {
                "" => String::new(),
                at => format!(" (at {at})"),
            };
            InvalidSchema(format!("component \"{name}\" cannot be used: {why}{place}"))
        };
        // The validator accepts some keywords without a meaning, such as multiples of 0.
        draft202012::meta::validate(schema).map_err(|error| {
            let at = format!("/components/schemas/{name}{}", error.instance_path());
            invalid(error.to_string(), at)
        })?;
        let source = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": format!("{COMPONENTS}{name}"),
            "components": {"schemas": *self.schemas},
        });
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .with_format("byte", violations::is_base64)
            // Runs in time proportional to the text, whatever the pattern.
            .with_pattern_options(PatternOptions::regex())
            .offline()
            .build(&source)
            .map_err(|error| {
                let mut why = error.to_string();
                if why.ends_with("is not a \"regex\"") {
                    why += ", or has look-around or back-references, which are not known here";
                }
                invalid(why, error.instance_path().to_string())
            })?;
        Ok(Some(SpecSchema(Arc::new(Compiled {
            name: name.to_owned(),
            schemas: Arc::clone(&self.schemas),
            originals: Arc::clone(&self.originals),
            validator,
        }))))
    }
}

impl SpecSchema {
    /// Limit of the work for which violations are found one by one: pairs of a value of the spec and a schema that
    /// applies to it. The validator collects all violations, also of alternatives, before it returns the first one:
    /// half a million took 175 MB. Without this limit, a schema that refers to itself in two alternatives would double
    /// the violations with each level of a client's spec.
    pub const VIOLATIONS_WORK_MAX: usize = 100_000;

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// All schemas of the schema's document, unconverted: the targets of its references are among them.
    pub fn components(&self) -> &Map<String, Value> {
        &self.0.originals
    }

    /// Adds every violation by a spec, up to the number that an answer has; of a spec that is too much work
    /// ([`SpecSchema::VIOLATIONS_WORK_MAX`]) only one. Messages name the rule of the schema, never the content of the
    /// spec, which may be secret.
    pub fn check(&self, spec: &Map<String, Value>, violations: &mut Violations) {
        let spec = Value::Object(spec.clone());
        if self.0.validator.is_valid(&spec) {
            return;
        }
        if !self.is_little_work(&spec) {
            let message = format!(
                "spec does not fit the schema \"{}\", and is too large to say where",
                self.name()
            );
            violations.push(Violation::new("spec", Constraint::Format, message));
            return;
        }
        let found = self.0.validator.iter_errors(&spec);
        let found = found.flat_map(|error| violations::violations(&error, &spec));
        // Several schemas may have the same violation.
        let mut reported = BTreeSet::new();
        let found = found.filter(|v| reported.insert((v.field.clone(), v.message.clone())));
        violations.extend(found.take(Violations::COUNT_MAX));
    }

    fn is_little_work(&self, spec: &Value) -> bool {
        let schema = self.0.schemas.get(&self.0.name);
        let mut waiting: Vec<_> = schema.map(|schema| (schema, spec)).into_iter().collect();
        let mut done = 0;
        while let Some((schema, value)) = waiting.pop() {
            done += 1;
            if let Value::Object(keywords) = schema {
                waiting.extend(keywords::applied(&self.0.schemas, keywords, value));
            }
            if done + waiting.len() > Self::VIOLATIONS_WORK_MAX {
                return false;
            }
        }
        true
    }
}

impl fmt::Debug for SpecSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SpecSchema").field(&self.0.name).finish()
    }
}

/// A name that OpenAPI allows.
fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !name.is_empty() && name.bytes().all(is_plain)
}

fn members(value: Option<Value>, name: &str) -> Result<Map<String, Value>, InvalidSchema> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err(InvalidSchema(format!("`{name}` must be an object"))),
    }
}

#[cfg(test)]
mod tests;

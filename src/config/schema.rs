//! Reads the file with the schemas of specs.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Map, Number, Value};
use yaml_serde::Value as Yaml;

use crate::domain::schema::SchemaDocument;
use hyperfleet_server_kit::files;

/// Largest file, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads an OpenAPI document, YAML or JSON.
pub(super) fn document(path: &Path) -> anyhow::Result<SchemaDocument> {
    let read = || -> anyhow::Result<SchemaDocument> {
        let text = files::read_text(path, BYTES_MAX)?;
        // JSON is YAML, too.
        let mut document: Yaml = yaml_serde::from_str(&text)?;
        document.apply_merge()?;
        Ok(SchemaDocument::parse(json(document)?)?)
    };
    read().with_context(|| {
        format!(
            "cannot use the schema document {} (server.openapi_schema_path)",
            path.display()
        )
    })
}

/// Converts to JSON. Keys that are not texts, such as the statuses of answers, become texts.
fn json(yaml: Yaml) -> anyhow::Result<Value> {
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => value.into(),
        Yaml::Number(number) => Value::Number(plain_number(&number)?),
        Yaml::String(text) => text.into(),
        Yaml::Sequence(items) => {
            Value::Array(items.into_iter().map(json).collect::<Result<_, _>>()?)
        }
        Yaml::Mapping(members) => {
            let mut object = Map::new();
            for (key, value) in members {
                object.insert(key_text(&key)?, json(value)?);
            }
            object.into()
        }
        Yaml::Tagged(tagged) => bail!("the YAML tag {} has no meaning in it", tagged.tag),
    })
}

fn plain_number(number: &yaml_serde::Number) -> anyhow::Result<Number> {
    let plain = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) => Some(integer.into()),
        (_, Some(integer), _) => Some(integer.into()),
        (_, _, Some(float)) => Number::from_f64(float),
        _ => None,
    };
    plain.with_context(|| format!("the number {number} has no meaning in it"))
}

fn key_text(key: &Yaml) -> anyhow::Result<String> {
    match key {
        Yaml::String(text) => Ok(text.clone()),
        Yaml::Bool(value) => Ok(value.to_string()),
        Yaml::Number(number) => Ok(number.to_string()),
        _ => bail!("a key in it is neither a text nor a number"),
    }
}

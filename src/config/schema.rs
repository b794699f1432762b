//! The file with the schemas of specs.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::domain::schema::SchemaDocument;

/// Largest file, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads an OpenAPI document, YAML or JSON.
pub(super) fn document(path: &Path) -> anyhow::Result<SchemaDocument> {
    let read = || -> anyhow::Result<SchemaDocument> {
        let mut text = String::new();
        let mut file = File::open(path)?.take(BYTES_MAX + 1);
        let bytes = file.read_to_string(&mut text)?;
        if bytes as u64 > BYTES_MAX {
            bail!("it has more than {BYTES_MAX} bytes");
        }
        // JSON is YAML, too.
        let document: Value = yaml_serde::from_str(&text)?;
        Ok(SchemaDocument::parse(document)?)
    };
    read().with_context(|| {
        format!(
            "cannot use the schema document {} (server.openapi_schema_path)",
            path.display()
        )
    })
}

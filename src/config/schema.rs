//! Reads the file with the schemas of specs.

use std::path::Path;

use anyhow::Context as _;

use hyperfleet_domain::schema::SchemaDocument;
use hyperfleet_server_kit::files;

/// Largest file, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads an OpenAPI document, YAML or JSON.
pub(super) fn document(path: &Path) -> anyhow::Result<SchemaDocument> {
    let read = || -> anyhow::Result<SchemaDocument> {
        let text = files::read_text(path, BYTES_MAX)?;
        // JSON is also YAML.
        let mut document: yaml_serde::Value = yaml_serde::from_str(&text)?;
        document.apply_merge()?;
        // Through text, where keys that are no texts, such as statuses of responses, become texts.
        let text = yaml_serde::to_string(&document)?;
        Ok(SchemaDocument::parse(yaml_serde::from_str(&text)?)?)
    };
    read().with_context(|| {
        format!(
            "cannot use the schema document {} (server.openapi_schema_path)",
            path.display()
        )
    })
}

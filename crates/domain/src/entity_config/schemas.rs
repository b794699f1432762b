//! Attaches the schemas of specs to kinds.

use super::checks::error_of;
use super::{EntityConfig, InvalidEntities};
use crate::entity::EntityRegistry;
use crate::schema::SchemaDocument;

/// Kinds with the schemas of their specs, and notes about kinds without.
#[derive(Debug)]
pub struct Attached {
    pub registry: EntityRegistry,
    /// One sentence for each kind whose specs are not checked although it names a schema.
    pub notes: Vec<String>,
}

/// Attaches the schemas that `configs` name to the kinds of `registry`. Without a document no spec is checked.
///
/// # Errors
///
/// Every kind whose schema is unusable, or is required and not in the document.
pub fn attach(
    mut registry: EntityRegistry,
    configs: &[EntityConfig],
    document: Option<&SchemaDocument>,
) -> Result<Attached, InvalidEntities> {
    let (mut errors, mut notes) = (Vec::new(), Vec::new());
    for config in configs
        .iter()
        .filter(|c| c.require_spec_schema && c.spec_schema_name.is_empty())
    {
        notes.push(format!(
            "entity kind \"{}\" requires a schema without saying which: its specs are not checked. Set spec_schema_name",
            config.kind
        ));
    }
    let named = configs.iter().enumerate();
    for (index, config) in named.filter(|(_, c)| !c.spec_schema_name.is_empty()) {
        let schema_error = |text: String| error_of((index, config), "spec_schema_name", text);
        let (kind, name) = (&config.kind, &config.spec_schema_name);
        let Some(document) = document else {
            if config.require_spec_schema {
                notes.push(format!(
                    "entity kind \"{kind}\" requires the schema \"{name}\", but no schema document is configured: its specs are not checked. Set server.openapi_schema_path"
                ));
            }
            continue;
        };
        match document.compile(name) {
            Ok(Some(schema)) => registry.set_spec_schema(kind, schema),
            Ok(None) if config.require_spec_schema => errors.push(schema_error(format!(
                "requires the schema \"{name}\", which the schema document does not have: add components.schemas.{name} to it"
            ))),
            Ok(None) => notes.push(format!(
                "entity kind \"{kind}\" names the schema \"{name}\", which the schema document does not have: its specs are not checked"
            )),
            Err(error) => errors.push(schema_error(format!("has a schema that cannot be used: {error}"))),
        }
    }
    if errors.is_empty() {
        Ok(Attached { registry, notes })
    } else {
        Err(InvalidEntities(errors))
    }
}

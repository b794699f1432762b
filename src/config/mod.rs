//! Settings: what they are, where they come from, and what they must be.
//!
//! Defaults, then the file, then the environment, then flags: later ones win. Unknown keys of the
//! file are refused.

mod args;
mod load;
mod schema;
mod settings;

use crate::domain;
use crate::domain::entity_config;
use crate::domain::schema::Attached;

pub use args::{Args, Command, DevArgs, OpenapiArgs, OpenapiFormat, SettingsArgs};
pub use settings::*;

impl Settings {
    /// The kinds, checked, with the schemas of their specs.
    ///
    /// # Errors
    ///
    /// Kinds that do not fit together; a schema document that cannot be used.
    pub fn kinds(&self) -> anyhow::Result<Attached> {
        let built_in;
        let configs = if let Some(entities) = &self.entities {
            entities
        } else {
            built_in = entity_config::built_in();
            &built_in
        };
        let registry = entity_config::registry(configs)?;
        let path = &self.server.openapi_schema_path;
        let document = if path.as_os_str().is_empty() {
            None
        } else {
            Some(schema::document(path)?)
        };
        Ok(domain::schema::attach(
            registry,
            configs,
            document.as_ref(),
        )?)
    }
}

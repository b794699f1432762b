//! Settings: what they are, where they come from, and what they must be.
//!
//! ```text
//! defaults ◀ file ◀ environment ◀ flags     later ones win: layers.rs, load.rs
//!      └──────┬─────────┴───────────┘
//!        catalogue.rs                       every setting: what it takes, variable, flag, help
//! ```

mod addresses;
mod args;
mod catalogue;
mod dev_token;
mod fault;
pub mod fleetd;
mod hosts;
mod layers;
mod load;
mod report;
mod retired;
mod schema;
mod secret;
mod settings;
#[cfg(test)]
mod tests;

use crate::domain::entity_config;
use crate::domain::entity_config::Attached;

pub use args::{
    Args, CheckArgs, CheckFormat, Command, ConfigCommand, DevArgs, MigrateArgs, MigrateCommand,
    OpenapiArgs, OpenapiFormat, SettingsArgs, StatusArgs, StatusFormat,
};
pub use dev_token::DevTokenArgs;
pub use layers::Origin;
pub use load::Loaded;
pub use report::{Effective, as_json, as_table, reference};
use secret::REDACTED;
pub use secret::Secret;
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
        Ok(entity_config::attach(registry, configs, document.as_ref())?)
    }
}

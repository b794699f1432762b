//! Settings of `hyperfleet-api` and its command line.
//!
//! [`hyperfleet_server_kit::settings`] reads and merges the sources.

mod args;
mod audit;
mod catalogue;
mod dev_defaults;
mod dev_token;
mod import;
mod load;
mod schema;
mod scope;
mod settings;
mod shared_args;
#[cfg(test)]
mod tests;

use hyperfleet_domain::EntityRegistry;
use hyperfleet_domain::entity_config;
use hyperfleet_domain::entity_config::{Attached, EntityConfig, InvalidEntities};
use hyperfleet_server_kit as kit;
use hyperfleet_server_kit::errors::ErrorList;

pub use args::{
    Args, CheckArgs, Command, ConfigCommand, DemoAdapterArgs, DevArgs, HealthcheckArgs, ImportArgs,
    MigrateArgs, MigrateCommand, OpenapiArgs, StatusArgs,
};
pub use audit::{AuditCommand, AuditExportArgs, AuditRangeArgs, AuditVerifyArgs};
pub use dev_defaults::dev_defaults;
pub use dev_token::DevTokenArgs;
pub use import::ImportOptions;
pub use load::{load, load_health, named_database};
pub use scope::command;
pub use settings::*;
pub use shared_args::SettingsArgs;

pub use hyperfleet_server_kit::settings::{Format, Output, OutputFormat, Secret, Tls};

/// Settings of `hyperfleet-api` with their sources.
pub type Loaded = kit::settings::Loaded<Settings>;

/// The tables of docs/reference/configuration.md: one for each section.
pub fn reference() -> String {
    let used: Vec<_> = catalogue::TABLE
        .settings
        .iter()
        .filter(|s| s.is_used())
        .collect();
    let sections = used.chunk_by(|one, other| one.section() == other.section());
    let table = |section: &[&_]| {
        let table = catalogue::TABLE.markdown("setting", section.iter().copied());
        format!("\n### {}\n\n{table}", section[0].section())
    };
    sections.map(table).collect()
}

impl Settings {
    /// The kinds, checked, with the schemas of their specs.
    ///
    /// # Errors
    ///
    /// Kinds that do not fit together; a schema document that cannot be used.
    pub fn kinds(&self) -> anyhow::Result<Attached> {
        let configs = self.entity_configs();
        let registry = entity_config::registry(&configs).map_err(of_entities)?;
        let path =
            Some(&self.server.openapi_schema_path).filter(|path| !path.as_os_str().is_empty());
        let document = path.map(|path| schema::document(path)).transpose()?;
        let attached = entity_config::attach(registry, &configs, document.as_ref());
        Ok(attached.map_err(of_entities)?)
    }

    /// The kinds, checked, without the schemas of their specs.
    ///
    /// # Errors
    ///
    /// Kinds that do not fit together.
    pub fn registry(&self) -> anyhow::Result<EntityRegistry> {
        let registry = entity_config::registry(&self.entity_configs());
        Ok(registry.map_err(of_entities)?)
    }

    fn entity_configs(&self) -> Vec<EntityConfig> {
        let configs = self.entities.clone();
        configs.unwrap_or_else(entity_config::built_in)
    }
}

fn of_entities(InvalidEntities(errors): InvalidEntities) -> ErrorList {
    ErrorList(errors)
}

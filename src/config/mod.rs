//! Settings of `hyperfleet-api`, and those of fleetd: what they are, and what they must be.
//!
//! How sources are read and merged is in [`hyperfleet_server_kit::settings`].

mod addresses;
mod args;
mod catalogue;
mod dev_token;
mod import;
mod load;
mod schema;
mod settings;
#[cfg(test)]
mod tests;

use crate::domain::entity_config;
use crate::domain::entity_config::Attached;
use hyperfleet_server_kit as kit;

pub use args::{
    Args, CheckArgs, Command, ConfigCommand, DevArgs, HealthcheckArgs, ImportArgs, MigrateArgs,
    MigrateCommand, OpenapiArgs, SettingsArgs, StatusArgs, StatusFormat,
};
pub use dev_token::DevTokenArgs;
pub use import::{ImportOptions, VerifyArg};
pub use load::{load, names_a_database};
pub use settings::*;

pub use hyperfleet_server_kit::settings::{Format, Output, Secret, Tls};

/// Settings of `hyperfleet-api` with their sources and faults.
pub type Loaded = kit::settings::Loaded<Settings>;

/// The tables of docs/configuration.md: one for each section.
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
        let configs = self.entities.clone();
        let configs = configs.unwrap_or_else(entity_config::built_in);
        let registry = entity_config::registry(&configs)?;
        let path =
            Some(&self.server.openapi_schema_path).filter(|path| !path.as_os_str().is_empty());
        let document = path.map(|path| schema::document(path)).transpose()?;
        Ok(entity_config::attach(
            registry,
            &configs,
            document.as_ref(),
        )?)
    }
}

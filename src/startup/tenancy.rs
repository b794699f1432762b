//! From settings to rules of tenancy.

use anyhow::anyhow;

use crate::domain::tenancy::{Config, Rules};

/// The rules that the settings stand for. Reads nothing else.
///
/// # Errors
///
/// Everything that is wrong with them, a line each, with the path of the setting.
pub(super) fn rules(settings: &Config) -> anyhow::Result<Rules> {
    Rules::new(settings.clone()).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        anyhow!("tenancy cannot be used like this:\n{}", lines.join("\n"))
    })
}

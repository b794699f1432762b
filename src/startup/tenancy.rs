//! From settings to rules of tenancy.

use anyhow::anyhow;

use crate::config::{Dimension, Tenant};
use crate::domain::tenancy::{self, Rules};

/// The rules that the settings stand for. Reads nothing else.
///
/// # Errors
///
/// Everything that is wrong with them, a line each, with the path of the setting.
pub(super) fn rules(settings: &Tenant) -> anyhow::Result<Rules> {
    let dimensions = settings.dimensions.iter().map(|dimension| {
        let Dimension {
            header,
            key,
            required,
        } = dimension.clone();
        tenancy::Dimension {
            header,
            key,
            required,
        }
    });
    let config = tenancy::Config {
        enabled: settings.enabled,
        enforce: settings.enforce,
        system_header: settings.system_header.clone(),
        dimensions: dimensions.collect(),
    };
    Rules::new(config).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        anyhow!("tenancy cannot be used like this:\n{}", lines.join("\n"))
    })
}

//! What the settings come to, checked before anything is started.

use std::sync::Arc;

use anyhow::bail;

use super::{authentication, process, tenancy};
use crate::auth::Issuer;
use crate::config::Settings;
use crate::domain::EntityRegistry;
use crate::domain::schema::Attached;
use crate::domain::tenancy::Rules;

/// What the service is to be.
pub(super) struct Plan {
    /// Its kinds.
    pub(super) registry: Arc<EntityRegistry>,
    /// Whose tokens it takes; unset for nobody's, because nobody needs one.
    pub(super) issuers: Option<Vec<Issuer>>,
    /// How requests say for whom they are made.
    pub(super) tenancy: Rules,
    /// What is odd, but stops nothing.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// Reads the files that the settings name, and nothing else.
    ///
    /// # Errors
    ///
    /// Everything that makes no sense, each with the path of its setting.
    pub(super) fn of(settings: &Settings) -> anyhow::Result<Self> {
        let kinds = settings.kinds();
        let issuers = authentication::issuers(&settings.server.jwt);
        let tenancy = tenancy::rules(&settings.server.tenant);
        let listeners = process::checked(settings);
        match (kinds, issuers, tenancy, listeners) {
            (Ok(Attached { registry, notes }), Ok(issuers), Ok(tenancy), Ok(_)) => Ok(Self {
                registry: Arc::new(registry),
                issuers,
                tenancy,
                notes,
            }),
            (kinds, issuers, tenancy, listeners) => {
                let faults = [kinds.err(), issuers.err(), tenancy.err(), listeners.err()];
                let faults = faults.into_iter().flatten();
                let faults: Vec<_> = faults.map(|fault| format!("{fault:#}")).collect();
                bail!("{}", faults.join("\n"))
            }
        }
    }

    /// Logs what is odd.
    pub(super) fn tell(&self) {
        for note in &self.notes {
            tracing::warn!("{note}");
        }
    }
}

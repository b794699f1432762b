//! What the settings come to, checked before anything is started.

use std::sync::Arc;

use anyhow::bail;

use super::{authentication, database, tenancy, tls};
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
    /// What its listeners prove themselves with.
    pub(super) tls: tls::Configs,
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
        let listeners = tls::load(settings);
        let rest = [
            database::check(&settings.database),
            distinct_headers(settings),
        ];
        let rest: Vec<_> = rest.into_iter().filter_map(Result::err).collect();
        match (kinds, issuers, tenancy, listeners) {
            (Ok(kinds), Ok(issuers), Ok(tenancy), Ok(tls)) if rest.is_empty() => {
                let Attached { registry, notes } = kinds;
                Ok(Self {
                    registry: Arc::new(registry),
                    issuers,
                    tenancy,
                    tls,
                    notes,
                })
            }
            (kinds, issuers, tenancy, listeners) => {
                let faults = [kinds.err(), issuers.err(), tenancy.err(), listeners.err()];
                let faults = faults.into_iter().flatten().chain(rest);
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

/// Checks that no header says who is calling, or with which token, and for which tenant as well.
fn distinct_headers(settings: &Settings) -> anyhow::Result<()> {
    let (jwt, tenant) = (&settings.server.jwt, &settings.server.tenant);
    if !jwt.enabled || !tenant.enabled {
        return Ok(());
    }
    let dimensions = tenant.dimensions.iter().map(|d| &d.header);
    let of_tenant: Vec<_> = dimensions.chain([&tenant.system_header]).collect();
    let of_issuers = jwt
        .configs
        .iter()
        .flat_map(|i| [&i.header, &i.identity_header]);
    let mut given = of_issuers.filter(|header| !header.is_empty());
    let twice = given.find(|header| of_tenant.iter().any(|o| o.eq_ignore_ascii_case(header)));
    match twice {
        Some(header) => bail!(
            "server.tenant and server.jwt.configs both use the header {header}: give one of them another"
        ),
        None => Ok(()),
    }
}

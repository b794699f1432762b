//! Checks the settings before anything is started.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::fleet;
use super::fleet_adapter::AdapterPlan;
use super::tls;
use super::{authentication, database};
use crate::auth::Issuer;
use crate::config::{Loaded, Settings};
use crate::domain::EntityRegistry;
use crate::domain::entity_config::Attached;
use crate::domain::tenancy::TenancyRules;
use hyperfleet_fleet::start::RegistryLocation;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::faults::Faults;

/// The checked settings of the service.
pub(super) struct Plan {
    pub(super) registry: Arc<EntityRegistry>,
    /// Issuers of accepted tokens; unset if callers need none.
    pub(super) issuers: Option<Vec<Issuer>>,
    pub(super) tenancy: TenancyRules,
    /// The registry of fleet, if its API is served.
    pub(super) fleet: Option<RegistryLocation>,
    /// The fleet adapter, if it runs here.
    pub(super) adapter: Option<AdapterPlan>,
    pub(super) tls: tls::Configs,
    /// Warnings: odd settings that stop nothing.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// Reads the files that the settings name, and nothing else.
    ///
    /// # Errors
    ///
    /// Every fault with the path of its setting and its source.
    pub(super) fn of(loaded: &Loaded) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let mut faults = Faults::default();
        let kinds = faults.part(settings.kinds());
        let issuers = faults.part(authentication::issuers(&settings.server.jwt));
        let tenancy = TenancyRules::new(settings.server.tenant.clone());
        let tenancy = faults.part(tenancy.map_err(|faults| Faults(faults).into()));
        let tls = faults.part(tls::load(settings));
        let is_served = settings.fleet.enabled;
        let fleet = is_served.then(|| fleet::registry_location(&settings.fleet));
        let fleet = faults.part(fleet.transpose());
        let registry = kinds.as_ref().map(|kinds| &kinds.registry);
        let adapter = faults.part(AdapterPlan::embedded(settings, registry));
        faults.part(database::check(&settings.database));
        faults.part(distinct_headers(settings));
        loaded.refuse(faults.0)?;
        let (Some(kinds), Some(issuers), Some(tenancy), Some(fleet), Some(adapter), Some(mut tls)) =
            (kinds, issuers, tenancy, fleet, adapter, tls)
        else {
            unreachable!("what was not had has a fault");
        };
        let Attached {
            registry,
            mut notes,
        } = kinds;
        notes.append(&mut tls.notes);
        Ok(Self {
            registry: Arc::new(registry),
            issuers,
            tenancy,
            fleet,
            adapter,
            tls,
            notes,
        })
    }
}

/// The kinds of the settings, for commands that need nothing else of them.
///
/// # Errors
///
/// Every fault of the kinds and the schemas of their specs.
pub(super) fn kinds(loaded: &Loaded) -> anyhow::Result<Attached> {
    loaded.made(Settings::kinds).context(Misuse)
}

/// Checks that no header carries both the caller or its token, and the tenant.
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

//! Checks the settings before anything is started.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::fleet;
use super::fleet_adapter;
use super::tls;
use super::{authentication, database};
use crate::config::{Loaded, Settings};
use hyperfleet_auth::Issuer;
use hyperfleet_domain::EntityRegistry;
use hyperfleet_domain::entity_config::Attached;
use hyperfleet_domain::tenancy::TenancyRules;
use hyperfleet_fleet::start::RegistryLocation;
use hyperfleet_fleet_adapter::AdapterPlan;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::errors::ErrorList;

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
    /// Every error with the path of its setting and its source.
    pub(super) fn of(loaded: &Loaded) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let mut errors = ErrorList::default();
        let kinds = errors.part(settings.kinds());
        let issuers = errors.part(authentication::issuers(&settings.server.jwt));
        let tenancy = TenancyRules::new(settings.server.tenant.clone());
        let tenancy = errors.part(tenancy.map_err(|errors| ErrorList(errors).into()));
        let tls = errors.part(tls::load(settings));
        let is_served = settings.fleet.enabled;
        let fleet = is_served.then(|| fleet::registry_location(&settings.fleet));
        let fleet = errors.part(fleet.transpose());
        let registry = kinds.as_ref().map(|kinds| &kinds.registry);
        let adapter = errors.part(fleet_adapter::embedded(settings, registry));
        errors.part(database::check(&settings.database));
        errors.part(distinct_headers(settings));
        loaded.refuse(errors.0)?;
        let (Some(kinds), Some(issuers), Some(tenancy), Some(fleet), Some(adapter), Some(mut tls)) =
            (kinds, issuers, tenancy, fleet, adapter, tls)
        else {
            unreachable!("every missing part has an error");
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
/// Every error of the kinds and the schemas of their specs.
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
    let mut set = of_issuers.filter(|header| !header.is_empty());
    let twice = set.find(|header| of_tenant.iter().any(|o| o.eq_ignore_ascii_case(header)));
    match twice {
        Some(header) => bail!(
            "server.tenant and server.jwt.configs both use the header {header}: give one of them another"
        ),
        None => Ok(()),
    }
}

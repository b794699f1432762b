//! Checks the settings before anything is started.

use std::sync::Arc;

use anyhow::bail;

use super::fleet;
use super::fleet_adapter::AdapterPlan;
use super::tls;
use super::{authentication, database};
use crate::auth::Issuer;
use crate::config::{Loaded, OF_KINDS, Settings};
use crate::domain::EntityRegistry;
use crate::domain::entity_config::Attached;
use crate::domain::tenancy::{Config, TenancyRules};
use hyperfleet_fleet::start::RegistryLocation;
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
    /// Every fault with the path of its setting, those of single settings, too, so that all are reported at once.
    pub(super) fn of(loaded: &Loaded) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let mut faults = Faults::default();
        let (jwt, tenant) = ("server.jwt", "server.tenant");
        let listeners = ["server.tls", "health.tls", "metrics.tls"];
        let kinds = faults.part_if(loaded.are_known(&OF_KINDS), || settings.kinds());
        let issuers = faults.part_if(loaded.are_known(&[jwt]), || {
            authentication::issuers(&settings.server.jwt)
        });
        let tenancy = faults.part_if(loaded.are_known(&[tenant]), || {
            tenancy_rules(&settings.server.tenant)
        });
        let tls = faults.part_if(loaded.are_known(&listeners), || tls::load(settings));
        let fleet = faults.part_if(loaded.are_known(&["fleet"]), || {
            fleet::served_registry(&settings.fleet)
        });
        let registry = kinds.as_ref().map(|kinds| &kinds.registry);
        let adapter = faults.part_if(loaded.are_known(&["fleet", "server"]), || {
            AdapterPlan::embedded(settings, registry)
        });
        faults.part_if(loaded.are_known(&["database"]), || {
            database::check(&settings.database)
        });
        faults.part_if(loaded.are_known(&[jwt, tenant]), || {
            distinct_headers(settings)
        });
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

/// The rules of tenancy, or every fault of their settings.
fn tenancy_rules(settings: &Config) -> anyhow::Result<TenancyRules> {
    Ok(TenancyRules::new(settings.clone()).map_err(Faults)?)
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

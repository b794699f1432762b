//! What the settings come to, checked before anything is started.

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
use crate::domain::tenancy::{Config, Rules};
use hyperfleet_fleet::start::RegistryLocation;
use hyperfleet_server_kit::faults::Faults;

/// What the service is to be.
pub(super) struct Plan {
    /// Its kinds.
    pub(super) registry: Arc<EntityRegistry>,
    /// Whose tokens it takes; unset for nobody's, because nobody needs one.
    pub(super) issuers: Option<Vec<Issuer>>,
    /// How requests say for whom they are made.
    pub(super) tenancy: Rules,
    /// Where fleet's units and machines are kept, if its API is served.
    pub(super) fleet: Option<RegistryLocation>,
    /// What the fleet adapter is to be, if it runs here.
    pub(super) adapter: Option<AdapterPlan>,
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
    /// Everything that makes no sense, each with the path of its setting: what is wrong with single
    /// settings, too, so that all of it is told at once.
    pub(super) fn of(loaded: &Loaded) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let mut faults = Faults::default();
        let (jwt, tenant) = ("server.jwt", "server.tenant");
        let listeners = ["server.tls", "health.tls", "metrics.tls"];
        let kinds = faults.part_if(loaded.knows(&OF_KINDS), || settings.kinds());
        let issuers = faults.part_if(loaded.knows(&[jwt]), || {
            authentication::issuers(&settings.server.jwt)
        });
        let tenancy = faults.part_if(loaded.knows(&[tenant]), || {
            tenancy_rules(&settings.server.tenant)
        });
        let tls = faults.part_if(loaded.knows(&listeners), || tls::load(settings));
        let fleet = faults.part_if(loaded.knows(&["fleet"]), || {
            fleet::served_registry(&settings.fleet)
        });
        let registry = kinds.as_ref().map(|kinds| &kinds.registry);
        let adapter = faults.part_if(loaded.knows(&["fleet", "server"]), || {
            AdapterPlan::beside_the_api(settings, registry)
        });
        faults.part_if(loaded.knows(&["database"]), || {
            database::check(&settings.database)
        });
        faults.part_if(loaded.knows(&[jwt, tenant]), || distinct_headers(settings));
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

/// The rules of tenancy, or everything that is wrong with their settings.
fn tenancy_rules(settings: &Config) -> anyhow::Result<Rules> {
    Ok(Rules::new(settings.clone()).map_err(Faults)?)
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

use hyperfleet_domain::EntityRegistry;
use hyperfleet_domain::entity_config::{EntityConfig, registry};
use hyperfleet_domain::tenancy::{Config, Dimension, TenancyRules};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{TestApi, TestDatabase, http_client_builder};

/// Whether tenants see each other's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walls {
    /// They do: tenancy is stored, but not enforced.
    Down,
    /// They do not.
    Up,
}

/// Headers of a tenant: an organisation, and optionally a project.
pub(crate) const ACME: &[(&str, &str)] = &[("x-org", "acme")];
pub(crate) const ACME_WEB: &[(&str, &str)] = &[("x-org", "acme"), ("x-project", "web")];
pub(crate) const BETA: &[(&str, &str)] = &[("x-org", "beta")];
pub(crate) const SYSTEM: &[(&str, &str)] = &[("x-system", "true")];

/// Rules with one required dimension, `X-Org`, and an optional one, `X-Project`.
pub(crate) fn tenancy(walls: Walls) -> TenancyRules {
    let dimension = |header: &str, key: &str, required| Dimension {
        header: header.to_owned(),
        key: key.to_owned(),
        required,
    };
    let config = Config {
        enabled: true,
        enforce: walls == Walls::Up,
        system_header: "X-System".to_owned(),
        dimensions: vec![
            dimension("X-Org", "org", true),
            dimension("X-Project", "project", false),
        ],
    };
    TenancyRules::new(config).unwrap()
}

impl TestApi {
    /// With these kinds, for tenants. Sends no headers: see [`TestApi::speaking`].
    pub(crate) async fn spawn_for(entities: &[EntityConfig], walls: Walls) -> Self {
        let database = TestDatabase::create().await;
        Self::again_for(registry(entities).unwrap(), database, walls)
    }

    /// On an existing database.
    pub(crate) fn again_for(
        registry: EntityRegistry,
        database: TestDatabase,
        walls: Walls,
    ) -> Self {
        let store = database.store();
        Self::spawn_for_tenants(registry, database, store, false, tenancy(walls))
    }

    /// The same server, with these headers on every request.
    pub(crate) fn speaking(&self, headers: &[(&str, &str)]) -> Self {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            all.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let client = http_client_builder().default_headers(all);
        Self {
            base: self.base.clone(),
            client: client.build().unwrap(),
            clock: self.clock.clone(),
            database: TestDatabase::at(self.database.options()),
        }
    }
}

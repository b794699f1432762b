use hyperfleet::domain::EntityRegistry;
use hyperfleet::domain::entity_config::{EntityConfig, registry};
use hyperfleet::domain::tenancy::{Config, Dimension, TenancyRules};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{TestApi, TestDatabase};

/// Whether tenants see each other's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walls {
    /// They do: tenancy is written down, and no more.
    Down,
    /// They do not.
    Up,
}

/// What tenants say of themselves: an organisation, and a project if they like.
pub(crate) const ACME: &[(&str, &str)] = &[("x-org", "acme")];
pub(crate) const ACME_WEB: &[(&str, &str)] = &[("x-org", "acme"), ("x-project", "web")];
pub(crate) const BETA: &[(&str, &str)] = &[("x-org", "beta")];
pub(crate) const SYSTEM: &[(&str, &str)] = &[("x-system", "true")];

/// Rules with one required dimension, `X-Org`, and one that is not, `X-Project`.
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
    /// With these kinds, for tenants. Asks as nobody: see [`TestApi::speaking`].
    pub(crate) async fn spawn_for(entities: &[EntityConfig], walls: Walls) -> Self {
        let database = TestDatabase::create().await;
        Self::again_for(registry(entities).unwrap(), database, walls)
    }

    /// On what is there already.
    pub(crate) fn again_for(
        registry: EntityRegistry,
        database: TestDatabase,
        walls: Walls,
    ) -> Self {
        let store = database.store();
        Self::spawn_for_tenants(registry, database, store, false, tenancy(walls))
    }

    /// The same server, asked with these headers.
    pub(crate) fn speaking(&self, headers: &[(&str, &str)]) -> Self {
        hyperfleet_server_kit::crypto::install();
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            all.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let client = reqwest::Client::builder().default_headers(all);
        Self {
            base: self.base.clone(),
            client: client.build().unwrap(),
            clock: self.clock.clone(),
            database: TestDatabase::at(self.database.options()),
        }
    }
}

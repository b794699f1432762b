//! A service whose changes are followed, and a client that watches.

use std::sync::Arc;

use hyperfleet_domain::entity_config::{self, EntityConfig};
use hyperfleet_domain::tenancy::TenancyRules;
use hyperfleet_service::app::Service;
use hyperfleet_service::http::ApiState;
use hyperfleet_storage::Store;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::{PATIENCE, TestApi, TestClock, TestDatabase, linked, root, store};

/// One instance. Its reader of changes ends with it.
pub(crate) struct Instance {
    pub(crate) api: TestApi,
    pub(crate) service: Service,
    follower: JoinHandle<()>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// The built-in kinds, one that is removed at once, and one with links.
pub(crate) fn kinds() -> Vec<EntityConfig> {
    let mut kinds = entity_config::built_in();
    kinds.push(root("Plain", "plains", &[]));
    kinds.push(linked(
        &[("peer", "Plain", 0, 3)],
        root("Linked", "linkeds", &["dns"]),
    ));
    kinds
}

/// A service of these kinds.
pub(crate) fn service_of(store: Store) -> Service {
    let registry = entity_config::registry(&kinds()).unwrap();
    Service::new(store, Arc::new(registry), false)
}

impl Instance {
    pub(crate) async fn spawn() -> Self {
        let database = TestDatabase::create().await;
        let store = database.store();
        Self::spawn_on(database, store, |_| {})
    }

    /// On another store than the database's default one.
    pub(crate) fn spawn_on(
        database: TestDatabase,
        store: Store,
        adjust: impl FnOnce(&mut ApiState),
    ) -> Self {
        Self::spawn_serving(service_of(store), database, adjust)
    }

    /// With another service than [`service_of`] a store.
    pub(crate) fn spawn_serving(
        service: Service,
        database: TestDatabase,
        adjust: impl FnOnce(&mut ApiState),
    ) -> Self {
        let followed = service.clone();
        let task = tokio::spawn(async move { followed.follow_changes().await });
        let clock = TestClock::at("2026-01-01T10:00:00Z");
        let api = TestApi::spawn_service(service.clone(), database, clock, adjust);
        Self {
            api,
            service,
            follower: task,
        }
    }

    /// Another instance on the same database.
    pub(crate) fn another(&self) -> Self {
        let options = self.api.database.options();
        Self::spawn_on(TestDatabase::at(options.clone()), store(options), |_| {})
    }

    /// With rules of tenancy.
    pub(crate) async fn spawn_for(tenancy: TenancyRules) -> Self {
        let database = TestDatabase::create().await;
        let store = database.store();
        Self::spawn_on(database, store, |api| api.tenancy = tenancy)
    }

    /// Begins a watch, which must be accepted.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_with(&[], path).await
    }

    pub(crate) async fn watch_with(&self, headers: &[(&str, &str)], path: &str) -> Watch {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut request = self
            .api
            .client
            .get(format!("{}{path}{sign}watch=true", self.api.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let status = response.status().as_u16();
        assert_eq!(status, 200, "{path}: {:?}", response.text().await);
        Watch {
            response,
            rest: String::new(),
            position: None,
        }
    }
}

/// A watching client.
pub(crate) struct Watch {
    pub(crate) response: reqwest::Response,
    rest: String,
    /// Where it can go on.
    pub(crate) position: Option<String>,
}

impl Watch {
    /// The next event, bookmarks included; `None` at the end of the answer.
    pub(crate) async fn try_next(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.line()).await;
        let event: Value = serde_json::from_str(&line.expect("an event")?).unwrap();
        if let Some(position) = event["position"].as_str() {
            self.position = Some(position.to_owned());
        }
        Some(event)
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.try_next().await.expect("the watch goes on")
    }

    /// The next change.
    pub(crate) async fn change(&mut self) -> Value {
        loop {
            let event = self.next().await;
            if event["type"] != "BOOKMARK" {
                return event;
            }
        }
    }

    /// The types and names of the next changes.
    pub(crate) async fn changes(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(brief(&self.change().await));
        }
        all
    }

    /// The next bookmark; nothing else comes before it.
    pub(crate) async fn bookmark(&mut self) -> String {
        let event = self.next().await;
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        event["position"].as_str().unwrap().to_owned()
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some((line, rest)) = self.rest.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.rest = rest;
                if !line.is_empty() {
                    return Some(line);
                }
                continue;
            }
            let chunk = self.response.chunk().await.ok()??;
            self.rest += std::str::from_utf8(&chunk).unwrap();
        }
    }
}

/// `ADDED a`.
pub(crate) fn brief(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!(
        "{} {}",
        text(&event["type"]),
        text(&event["object"]["name"])
    )
}

/// Removes a finalizing resource.
pub(crate) async fn force(api: &TestApi, path: &str) {
    let body = serde_json::json!({"reason": "test"});
    let forced = api.post(&format!("{path}/force-delete"), body).await;
    assert_eq!(forced.status, 204, "{path}: {}", forced.body);
}

use std::net::TcpListener;
use std::sync::Arc;

use hyperfleet::config::Settings;
use hyperfleet::startup::{self, ConnectionOptions};
use hyperfleet_auth::Authentication;
use hyperfleet_domain::EntityRegistry;
use hyperfleet_domain::entity_config::{self, EntityConfig};
use hyperfleet_domain::tenancy::TenancyRules;
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_server_kit::http::{Admission, Gate, Limits, Redaction};
use hyperfleet_server_kit::program::Build;
use hyperfleet_service::app::Service;
use hyperfleet_service::http::ApiState;
use hyperfleet_storage::Store;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Answer, PATIENCE, TestClock, TestDatabase, http_client};

/// RFC 7396.
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// RFC 6902.
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// The production server on a free port, with a database and a clock of its own.
pub(crate) struct TestApi {
    pub(crate) base: String,
    pub(crate) client: reqwest::Client,
    pub(crate) clock: TestClock,
    pub(crate) database: TestDatabase,
}

impl TestApi {
    /// With the built-in kinds.
    pub(crate) async fn spawn() -> Self {
        Self::spawn_with(&entity_config::built_in()).await
    }

    /// With these kinds.
    pub(crate) async fn spawn_with(entities: &[EntityConfig]) -> Self {
        let registry = entity_config::registry(entities).unwrap();
        let database = TestDatabase::create().await;
        let store = database.store();
        Self::spawn_on(registry, database, store, false)
    }

    /// With these kinds, and a reader of changes in `tasks`: lists can be watched until it ends.
    pub(crate) async fn spawn_watchable(
        entities: &[EntityConfig],
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let database = TestDatabase::create().await;
        Self::spawn_watchable_on(database, entities, tasks)
    }

    /// The same, on a database.
    pub(crate) fn spawn_watchable_on(
        database: TestDatabase,
        entities: &[EntityConfig],
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let registry = entity_config::registry(entities).unwrap();
        let service = Service::new(database.store(), Arc::new(registry), false);
        let followed = service.clone();
        tasks.spawn(async move { followed.follow_changes().await });
        let clock = TestClock::at("2026-01-01T10:00:00Z");
        Self::spawn_service(service, database, clock, |_| {})
    }

    /// On another store than the database's default one.
    pub(crate) fn spawn_on(
        registry: EntityRegistry,
        database: TestDatabase,
        store: Store,
        lists_include_deleted: bool,
    ) -> Self {
        let without = TenancyRules::default();
        Self::spawn_for_tenants(registry, database, store, lists_include_deleted, without)
    }

    /// The same, with these rules of tenancy.
    pub(crate) fn spawn_for_tenants(
        registry: EntityRegistry,
        database: TestDatabase,
        store: Store,
        lists_include_deleted: bool,
        tenancy: TenancyRules,
    ) -> Self {
        let clock = TestClock::at("2026-01-01T10:00:00Z");
        let service = Service::new(store, Arc::new(registry), lists_include_deleted);
        Self::spawn_service(service, database, clock, |api| api.tenancy = tenancy)
    }

    /// The built-in kinds behind `admission`.
    pub(crate) async fn spawn_admitted(admission: &Admission) -> Self {
        Self::spawn_admitted_for(admission, TenancyRules::default()).await
    }

    /// The same, with these rules of tenancy.
    pub(crate) async fn spawn_admitted_for(admission: &Admission, tenancy: TenancyRules) -> Self {
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let database = TestDatabase::create().await;
        let clock = TestClock::at("2026-01-01T10:00:00Z");
        let service = Service::new(database.store(), Arc::new(registry), false);
        Self::spawn_service(service, database, clock, |api| {
            api.admission = admission.clone();
            api.tenancy = tenancy;
        })
    }

    /// With callers that must authenticate.
    pub(crate) fn spawn_protected(
        registry: EntityRegistry,
        database: TestDatabase,
        store: Store,
        clock: TestClock,
        authentication: Authentication,
    ) -> Self {
        let service = Service::new(store, Arc::new(registry), false);
        Self::spawn_service(service, database, clock, |api| {
            api.authentication = authentication;
        })
    }

    /// The built-in kinds with fleet beside them, and other options.
    pub(crate) async fn spawn_beside(
        fleet: &EtcdFleet,
        clock: TestClock,
        adjust: impl FnOnce(&mut ApiState),
    ) -> Self {
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let database = TestDatabase::create().await;
        let service = Service::new(database.store(), Arc::new(registry), false);
        Self::spawn_service(service, database, clock, |api| {
            api.fleet = Some(fleet.clone());
            adjust(api);
        })
    }

    /// On a service that the test shares.
    pub(crate) fn spawn_service(
        service: Service,
        database: TestDatabase,
        clock: TestClock,
        adjust: impl FnOnce(&mut ApiState),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut api = ApiState {
            service,
            clock: clock.clock(),
            build: Build {
                component: "api",
                version: "1.2.3",
                commit: "abc",
                time: "now",
                compiler: "rustc 1.95.0",
            },
            authentication: Authentication::Off,
            admission: Admission::new(Gate::serving(), &Limits::default()),
            redaction: Redaction::default(),
            tenancy: TenancyRules::default(),
            quiet_client: None,
            fleet: None,
        };
        adjust(&mut api);
        let address = listener.local_addr().unwrap();
        let options = ConnectionOptions {
            workers: 1,
            ..ConnectionOptions::new(&Settings::default().server.timeouts, 1024, None)
        };
        let server = startup::bind(listener, &api, &options).unwrap();
        let base = format!("http://{address}/api/hyperfleet/v1");
        server.start();
        Self {
            base,
            client: http_client(),
            clock,
            database,
        }
    }

    /// A client of a server that runs elsewhere.
    pub(crate) fn remote(base: &str, database: TestDatabase) -> Self {
        Self {
            base: base.to_owned(),
            client: http_client(),
            clock: TestClock::at("2026-01-01T10:00:00Z"),
            database,
        }
    }

    /// Sends a request with a JSON body, or none for `null`; `None` if the connection is lost before the answer.
    /// Waiting too long fails the test.
    pub(crate) async fn try_send(&self, method: &str, path: &str, body: &Value) -> Option<Answer> {
        let url = format!("{}{path}", self.base);
        let mut request = self.client.request(method.parse().unwrap(), url);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let exchange = async {
            let response = request.send().await.ok()?;
            Answer::try_of(response).await
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await;
        answer.unwrap_or_else(|_| panic!("{method} {path} hangs"))
    }

    /// Sends a request with a JSON body, or none for `null`.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(&body).unwrap()
        };
        self.send_bytes(method, path, bytes).await
    }

    /// Sends a request with headers, and a JSON body, or none for `null`.
    pub(crate) async fn send_with(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let url = format!("{}{path}", self.base);
        let mut request = self.client.request(method.parse().unwrap(), url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        Answer::of(request.send().await.unwrap()).await
    }

    /// Sends a request with any body.
    pub(crate) async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let url = format!("{}{path}", self.base);
        let request = self.client.request(method.parse().unwrap(), url).body(body);
        Answer::of(request.send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, body).await
    }

    /// Sends a patch of a media type.
    pub(crate) async fn patch_as(&self, media_type: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", media_type)];
        self.send_with(&headers, "PATCH", path, body).await
    }

    /// Sends a merge patch.
    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.patch_as(MERGE_PATCH, path, &body).await
    }

    /// Sends operations.
    pub(crate) async fn operate(&self, path: &str, body: Value) -> Answer {
        self.patch_as(JSON_PATCH, path, &body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, Value::Null).await
    }

    /// Creates a resource in a list; returns its path.
    pub(crate) async fn make(&self, list: &str, kind: &str, name: &str) -> String {
        let made = self.made(list, kind, name).await;
        format!("{list}/{}", made.id())
    }

    /// Creates a resource in a list; returns the answer.
    pub(crate) async fn made(&self, list: &str, kind: &str, name: &str) -> Answer {
        let body = json!({"kind": kind, "name": name, "spec": {}});
        let made = self.post(list, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made
    }

    /// Creates a cluster; returns its path.
    pub(crate) async fn cluster(&self, name: &str) -> String {
        self.make("/clusters", "Cluster", name).await
    }

    /// Creates a node pool below a cluster's path; returns its nested path.
    pub(crate) async fn nodepool(&self, cluster: &str, name: &str) -> String {
        self.make(&format!("{cluster}/nodepools"), "NodePool", name)
            .await
    }

    /// Each of these adapters reports `Finalized=True` on a finalizing resource.
    pub(crate) async fn finalize(&self, path: &str, adapters: &[&str], generation: i32) {
        for adapter in adapters {
            let done = [("Finalized", "True")];
            let answer = self.report(path, adapter, generation, &done).await;
            assert_eq!(answer.status, 201, "{path} {adapter}: {}", answer.body);
        }
    }

    /// Deletes a resource, which must succeed; returns the answer.
    pub(crate) async fn deleted(&self, path: &str) -> Answer {
        let answer = self.delete(path).await;
        assert_eq!(answer.status, 202, "{path}: {}", answer.body);
        answer
    }

    /// Whether the path exists.
    pub(crate) async fn has(&self, path: &str) -> bool {
        let answer = self.get(path).await;
        assert!(
            [200, 404].contains(&answer.status),
            "{path}: {}",
            answer.body
        );
        answer.status == 200
    }

    /// Rows of resources in all tables, and counted resources.
    pub(crate) async fn rows(&self) -> i64 {
        self.count(
            "SELECT (SELECT count(*) FROM resources) + (SELECT count(*) FROM adapter_reports)
                  + (SELECT count(*) FROM resource_references)
                  + (SELECT coalesce(sum(count), 0)::bigint FROM resource_counts)",
        )
        .await
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        let mut connection = self.database.connect().await;
        sqlx::query_scalar(sql)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    /// Reports on the resource at a path as one of its adapters, observed now by the test's clock. `statuses` may
    /// contain `Available`, `Applied`, `Health` (all True by default) and more.
    pub(crate) async fn report(
        &self,
        path: &str,
        adapter: &str,
        generation: i32,
        statuses: &[(&str, &str)],
    ) -> Answer {
        let mut conditions: Vec<(&str, &str)> = ["Available", "Applied", "Health"]
            .map(|kind| (kind, "True"))
            .to_vec();
        for status in statuses {
            conditions.retain(|(kind, _)| *kind != status.0);
            conditions.push(*status);
        }
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect();
        let body = json!({
            "adapter": adapter,
            "observed_generation": generation,
            "observed_time": self.clock.now(),
            "conditions": conditions,
        });
        self.put(&format!("{path}/statuses"), body).await
    }
}

//! A client of the REST API.

use hyperfleet_testkit::{Answer, http_client, until};
use reqwest::Method;
use serde_json::{Value, json};

/// A client of one service.
#[derive(Clone)]
pub(super) struct Rest {
    client: reqwest::Client,
    /// Its URL without a path.
    pub(super) server: String,
}

impl Rest {
    pub(super) fn at(address: &str) -> Self {
        let (client, server) = (http_client(), format!("http://{address}"));
        Self { client, server }
    }

    /// Sends a request whose response has to have this status.
    async fn send(&self, method: Method, path: &str, body: Option<Value>, status: u16) -> Value {
        let answer = self.ask(method.clone(), path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        answer.body
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let url = format!("{}{path}", self.server);
        let mut request = self.client.request(method, url);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        Answer::of(request.send().await.unwrap()).await
    }

    /// Creates a resource below a path; gives its own.
    async fn create(&self, path: &str, kind: &str, name: &str, spec: &Value) -> String {
        let body = json!({"kind": kind, "name": name, "spec": spec});
        let created = self.send(Method::POST, path, Some(body), 201).await;
        created["href"].as_str().unwrap().to_owned()
    }

    /// Creates a cluster; gives its path.
    pub(super) async fn create_cluster(&self, name: &str) -> String {
        let path = "/api/hyperfleet/v1/clusters";
        self.create(path, "Cluster", name, &json!({})).await
    }

    /// Creates a node pool of a cluster; gives its path.
    pub(super) async fn create_pool(&self, cluster: &str, name: &str, spec: &Value) -> String {
        self.create(&format!("{cluster}/nodepools"), "NodePool", name, spec)
            .await
    }

    /// Replaces the spec of a resource.
    pub(super) async fn patch(&self, path: &str, spec: &Value) {
        self.send(Method::PATCH, path, Some(json!({"spec": spec})), 200)
            .await;
    }

    pub(super) async fn delete(&self, path: &str) {
        self.send(Method::DELETE, path, None, 202).await;
    }

    /// Whether GET answers 404.
    pub(super) async fn is_gone(&self, path: &str) -> bool {
        let answer = self.ask(Method::GET, path, None).await;
        assert!(
            [200, 404].contains(&answer.status),
            "{path}: {}",
            answer.body
        );
        answer.status == 404
    }

    pub(super) async fn until_gone(&self, path: &str) {
        until(&format!("{path} is gone"), async || {
            self.is_gone(path).await
        })
        .await;
    }

    /// A condition of a resource that exists, such as `Reconciled`.
    async fn condition(&self, path: &str, name: &str) -> Value {
        let resource = self.send(Method::GET, path, None, 200).await;
        named(&resource["status"]["conditions"], name)
    }

    pub(super) async fn is_reconciled(&self, path: &str) -> bool {
        self.condition(path, "Reconciled").await["status"] == "True"
    }

    pub(super) async fn until_reconciled(&self, path: &str) {
        until(&format!("{path} is reconciled"), async || {
            self.is_reconciled(path).await
        })
        .await;
    }

    /// A condition of the adapter's report on a resource; `null` while there is no report.
    pub(super) async fn reported(&self, path: &str, name: &str) -> Value {
        let reports = self
            .send(Method::GET, &format!("{path}/statuses"), None, 200)
            .await;
        let reports = reports["items"].as_array().unwrap().iter();
        let mut of_fleet = reports.filter(|report| report["adapter"] == "fleet");
        of_fleet
            .next()
            .map_or(Value::Null, |report| named(&report["conditions"], name))
    }
}

fn named(conditions: &Value, name: &str) -> Value {
    let conditions = conditions.as_array().into_iter().flatten();
    let mut conditions = conditions.filter(|condition| condition["type"] == name);
    conditions.next().cloned().unwrap_or_default()
}

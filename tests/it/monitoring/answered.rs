//! A real Prometheus scrapes a real service; every query of the dashboard and every rule is answered.

use std::time::Duration;

use hyperfleet_testkit::{
    Authority, NamedQuery, ScrapeJob, TestPrometheus, dashboard_queries, prometheus_program,
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::faults::program::Program;
use crate::faults::tokens::minted;
use crate::support::{TestApi, TestDatabase};

const VARIABLES: &[(&str, &str)] = &[
    ("namespace", "prod"),
    ("job", "hyperfleet-api"),
    ("instance", ".*"),
    ("__rate_interval", "15s"),
];

/// Settings with all that there are metrics of: kinds with rules, an issuer, a certificate.
fn settings(folder: &TempDir) -> String {
    let kinds = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/entities.yaml");
    let kinds = std::fs::read_to_string(kinds).unwrap();
    let issued = Authority::new().issue("localhost");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (
        write("cert.pem", &issued.certificate),
        write("key.pem", &issued.key),
    );
    let keys = folder.path().join("token/jwks.json");
    let text = format!(
        "{kinds}
server: {{jwt: {{enabled: true, configs: [{{issuer_url: 'http://localhost/dev-token', jwk_cert_file: '{}'}}]}}}}
health: {{port: 0, shutdown_delay: 0s, tls: {{enabled: true, cert_file: '{cert}', key_file: '{key}'}}}}
metrics: {{port: 0, reconciliation_stuck_threshold: 1s}}
",
        keys.display()
    );
    write("config.yaml", &text)
}

/// A client that does all that there are metrics of, over and over.
struct Player {
    api: TestApi,
    token: String,
}

impl Player {
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let url = format!("{}{path}", self.api.base);
        let mut request = self
            .api
            .client
            .request(method, url)
            .bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    async fn round(&self, number: usize) {
        let cluster = json!({"kind": "Cluster", "name": format!("round-{number}"), "spec": {}});
        let (status, made) = self
            .send(Method::POST, "/clusters", Some(cluster.clone()))
            .await;
        assert_eq!(status, 201, "{made}");
        let path = format!("/clusters/{}", made["id"].as_str().unwrap());
        let statuses = format!("{path}/statuses");
        let forced = format!("{path}/force-delete");
        for (method, path, body, expected) in [
            (Method::POST, "/clusters", Some(cluster), 409),
            (Method::GET, &path, None, 200),
            (Method::GET, "/clusters", None, 200),
            (Method::GET, &statuses, None, 200),
            (Method::PUT, &statuses, Some(json!({})), 400),
            (Method::PATCH, &path, Some(json!({"spec": {"a": 1}})), 200),
        ] {
            let (status, answer) = self.send(method, path, body).await;
            assert_eq!(status, expected, "{path}: {answer}");
        }
        // Every second one stays, and is not reconciled.
        if number.is_multiple_of(2) {
            let (status, _) = self.send(Method::DELETE, &path, None).await;
            assert_eq!(status, 202);
            let reason = Some(json!({"reason": "test"}));
            let (status, _) = self.send(Method::POST, &forced, reason).await;
            assert_eq!(status, 204);
        }
        let without = self.api.get("/clusters").await;
        assert_eq!(without.status, 401);
        self.fail().await;
    }

    /// A request that the service can answer with nothing but a 500.
    async fn fail(&self) {
        let mut connection = self.api.database.connect().await;
        let away = "ALTER TABLE audit_entries RENAME TO away";
        let back = "ALTER TABLE away RENAME TO audit_entries";
        sqlx::raw_sql(away).execute(&mut connection).await.unwrap();
        let (status, _) = self.send(Method::GET, "/audit", None).await;
        sqlx::raw_sql(back).execute(&mut connection).await.unwrap();
        assert_eq!(status, 500);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_has_data_of_a_running_service() {
    let Some(prometheus) = prometheus_program("prometheus") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let token = minted(&folder.path().join("token"), &[]).await;
    let config = settings(&folder);
    let database = TestDatabase::create().await;
    let url = database.url();
    let args = ["serve", "--config", &config, "--database-url", &url];
    let listen = ["--server-host", "127.0.0.1", "--server-port", "0"];
    let mut program = Program::start(&[&args[..], &listen].concat());
    let job = ScrapeJob {
        name: "hyperfleet-api",
        instances: vec![program.address("metrics").await],
        labels: "{namespace: prod}",
    };
    let api = program.serving(database).await;
    let prometheus = TestPrometheus::start(&prometheus, &[job]).await;
    let play = tokio::spawn(async move {
        let player = Player { api, token };
        for number in 0.. {
            player.round(number).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });

    let mut queries = dashboard_queries("hyperfleet-api.json", VARIABLES);
    assert!(queries.len() > 50, "{}", queries.len());
    let of_rules = prometheus.rule_queries(|group| !group.starts_with("fleet"));
    queries.extend(of_rules.await);
    queries.push(NamedQuery {
        name: "it is ready".into(),
        expression: "hyperfleet_api_ready == 1".into(),
    });
    prometheus.assert_answered(&queries).await;
    assert!(!play.is_finished(), "{:?}", play.await);
    play.abort();
}

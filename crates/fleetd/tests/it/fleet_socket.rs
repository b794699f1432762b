//! A client of fleet's API on a unix socket.

use std::path::Path;

use hyperfleet_testkit::{PATIENCE, http_client_builder, sum, until};
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// Service of a unit that runs until it is stopped.
pub(super) const SLEEP: [&str; 1] = ["Service ExecStart=/bin/sleep 1000"];

/// A client of one fleetd.
pub(super) struct FleetSocket {
    client: reqwest::Client,
}

impl FleetSocket {
    pub(super) fn at(socket: &Path) -> Self {
        let client = http_client_builder().unix_socket(socket);
        let client = client.timeout(PATIENCE).build().unwrap();
        Self { client }
    }

    /// Response to a request as it comes.
    pub(super) async fn request(&self, method: Method, path: &str) -> Response {
        let request = self.client.request(method, format!("http://fleet{path}"));
        request.send().await.unwrap()
    }

    /// Status and body of a response; `None` if there is no response.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, String)> {
        let mut request = self.client.request(method, format!("http://fleet{path}"));
        if let Some(body) = body {
            request = request.header("content-type", "application/json");
            request = request.body(body.to_string());
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.text().await.ok()?))
    }

    /// Response to a GET, if there is one.
    pub(super) async fn get(&self, path: &str) -> Option<(u16, Value)> {
        let (status, body) = self.send(Method::GET, path, None).await?;
        Some((status, serde_json::from_str(&body).unwrap_or_default()))
    }

    /// All items of a list, over its pages, as soon as fleetd serves them.
    pub(super) async fn list(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        until(&format!("{path} are listed"), async || {
            items.clear();
            self.add_pages(path, &mut items).await.is_some()
        })
        .await;
        items
    }

    /// `None` while fleetd does not serve.
    async fn add_pages(&self, path: &str, items: &mut Vec<Value>) -> Option<()> {
        let mut query = String::new();
        loop {
            let (status, mut page) = self.get(&format!("/fleet/v1/{path}{query}")).await?;
            if status == 503 {
                return None;
            }
            assert_eq!(status, 200, "{path}{query}: {page}");
            let member = if path == "state" { "states" } else { path };
            if let Some(page) = page[member].as_array_mut() {
                items.append(page);
            }
            match page["nextPageToken"].as_str() {
                Some(next) => query = format!("?nextPageToken={next}"),
                None => return Some(()),
            }
        }
    }

    /// Puts a unit; gives the status, and the message of an error. Lines have the form `Section Name=value`; without
    /// lines its file stays.
    pub(super) async fn try_put(
        &self,
        unit: &str,
        lines: &[&str],
        desired: &str,
    ) -> Option<(u16, String)> {
        let options = lines.iter().map(|line| {
            let (section, rest) = line.split_once(' ').unwrap();
            let (name, value) = rest.split_once('=').unwrap();
            json!({"section": section, "name": name, "value": value})
        });
        let options: Vec<_> = options.collect();
        let body = json!({"desiredState": desired, "options": options});
        self.send(Method::PUT, &unit_path(unit), Some(&body)).await
    }

    /// Puts a unit, which has to be accepted.
    pub(super) async fn put(&self, unit: &str, lines: &[&str], desired: &str) {
        let answer = self.try_put(unit, lines, desired).await;
        let is_accepted = matches!(answer, Some((200..=299, _)));
        assert!(is_accepted, "{unit}: {answer:?}");
    }

    pub(super) async fn destroy(&self, unit: &str) {
        let answer = self.send(Method::DELETE, &unit_path(unit), None).await;
        assert_eq!(answer, Some((204, String::new())), "{unit}");
    }

    /// Changes metadata of machines; gives the status.
    pub(super) async fn patch_machines(&self, operations: &Value) -> u16 {
        let path = "/fleet/v1/machines";
        let answer = self.send(Method::PATCH, path, Some(operations)).await;
        answer.unwrap().0
    }

    /// Reported state of a unit.
    pub(super) async fn state(&self, unit: &str) -> Value {
        let state = self.get(&format!("/fleet/v1/state/{unit}")).await;
        state.map_or(Value::Null, |(_, body)| body)
    }

    /// Waits for a reported state of a unit.
    pub(super) async fn until_state(&self, unit: &str, active: &str) {
        until(&format!("{unit} is {active}"), async || {
            self.state(unit).await["systemdActiveState"] == active
        })
        .await;
    }

    /// Why a unit is where it is, or nowhere; empty if there is no such unit.
    pub(super) async fn explained(&self, unit: &str) -> String {
        let answer = self.get(&format!("{}/explain", unit_path(unit))).await;
        let body = answer.map(|(_, body)| body).unwrap_or_default();
        body["reason"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) async fn until_explained(&self, unit: &str, text: &str) {
        until(&format!("{unit} is explained by {text:?}"), async || {
            self.explained(unit).await.contains(text)
        })
        .await;
    }

    /// Value of a metric, all of its series added; `None` if there is no response.
    pub(super) async fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.send(Method::GET, "/metrics", None).await?;
        Some(sum(&text, name, &[]))
    }
}

fn unit_path(unit: &str) -> String {
    format!("/fleet/v1/units/{unit}")
}

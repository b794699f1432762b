//! Log lines of requests.

use serde_json::Value;

use super::program::{Fleetd, Place};
use hyperfleet_testkit::until;

/// The line of a request to a path with this beginning.
async fn line_of(fleetd: &Fleetd, path: &str) -> Value {
    let mut found = Value::Null;
    until("the request is in the log", async || {
        let said = fleetd.output();
        let lines = said.lines().filter_map(|l| serde_json::from_str(l).ok());
        let mut lines = lines.filter(|l: &Value| l.get("status_code").is_some());
        let line = lines.find(|l| l["path"].as_str().unwrap_or_default().starts_with(path));
        found = line.unwrap_or_default();
        !found.is_null()
    })
    .await;
    found
}

#[tokio::test]
async fn log_lines_shorten_the_path_and_name_no_unknown_caller() {
    let place = Place::new().await;
    let fleetd = place.start_as("m1", &[("log_format", "json")]);
    fleetd.until_serving().await;
    let long = format!("/fleet/v1/units/{}", "b".repeat(60_000));
    let (status, _) = fleetd.get(&long).await.unwrap();
    assert_eq!(status, 404);
    let line = line_of(&fleetd, "/fleet/v1/units/bb").await;
    let path = line["path"].as_str().unwrap();
    assert!(path.len() < 600 && path.ends_with("bb…"), "{path}");
    let line = line_of(&fleetd, "/fleet/v1/units").await;
    assert_eq!(line.get("caller"), None, "{line}");
    assert_eq!(line["component"], "fleetd", "{line}");
}

/// The outage itself is logged separately.
#[tokio::test]
async fn requests_while_etcd_is_away_are_no_errors() {
    let place = Place::on("http://127.0.0.1:1".to_owned());
    let fleetd = place.start_as("m1", &[("log_format", "json")]);
    until("it answers", async || {
        fleetd.get("/fleet/v1/units").await.is_some()
    })
    .await;
    let line = line_of(&fleetd, "/fleet/v1/units").await;
    assert_eq!(line["status_code"], 503, "{line}");
    assert_eq!(line["level"], "info", "{line}");
    let cause = line["error"].as_str().unwrap();
    assert!(cause.contains("mirror not connected"), "{line}");
}

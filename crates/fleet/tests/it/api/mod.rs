//! Fleet's API over HTTP, as fleetd serves it, on a real etcd.

mod clients;
mod cluster;
mod defects;
mod draining;
mod machines;
mod pages;
mod rebalancing;
mod restarting;
mod routes;
mod units;
mod watching;

use serde_json::{Value, json};

/// A unit of which the text tells it from others.
fn unit(text: &str) -> Value {
    json!({"options": [{"section": "Service", "name": "ExecStart", "value": text}]})
}

/// An error as fleet's clients know it.
fn error(code: u16, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

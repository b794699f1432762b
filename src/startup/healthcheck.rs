//! `hyperfleet-api healthcheck`: the health check of a container that has no other program.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};

use super::loopback::reachable;
use crate::config::{self, Health, HealthcheckArgs};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::program::print;

/// Longest part of an answer that is repeated, in bytes: another server may listen on the port.
const ANSWER_BYTES_MAX: usize = 1024;

/// Asks the running instance, and prints its answer.
///
/// # Errors
///
/// The instance is not healthy, does not answer in time, or its address is unknown.
pub(super) async fn run(args: &HealthcheckArgs) -> anyhow::Result<()> {
    let health = config::load_health(&args.settings)?;
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let url = url(&health, path)?;
    let answer = probe(&url, args.timeout).await.map_err(|error| {
        anyhow!(
            "no answer from {url}: {}; is the instance running, with the same health.host and health.port?",
            chain(&error.without_url())
        )
    })?;
    let status = answer.status();
    let text = beginning(answer).await;
    if status != StatusCode::OK {
        bail!("{url} answers {}: {text}", status.as_u16());
    }
    print(&format!("{text}\n"));
    Ok(())
}

async fn probe(url: &str, timeout: Duration) -> reqwest::Result<Response> {
    let client = Client::builder()
        // A proxy would answer for another machine.
        .no_proxy()
        .redirect(Policy::none())
        .timeout(timeout)
        // The certificate is for the name that clients use, not for the loopback address, and nothing secret is sent.
        // Probes of Kubernetes do not verify it either. The system needs no authorities.
        .tls_certs_only([])
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    client.get(url).send().await
}

/// The beginning of an answer, on one line.
async fn beginning(mut answer: Response) -> String {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(ANSWER_BYTES_MAX);
    let text = String::from_utf8_lossy(&body);
    text.trim()
        .replace(|c: char| c.is_control() && c != ' ', " ")
}

/// The URL of the health listener for a client on the same machine.
fn url(health: &Health, path: &str) -> anyhow::Result<String> {
    if health.port == 0 {
        bail!(
            "health.port is 0, so the port of the running instance is not known: set one, for instance HYPERFLEET_HEALTH_PORT=8080"
        );
    }
    let scheme = if health.tls.enabled { "https" } else { "http" };
    let host = match health.host.parse() {
        Ok(address) => match reachable(address) {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        },
        Err(_) => health.host.clone(),
    };
    let url = format!("{scheme}://{host}:{}{path}", health.port);
    reqwest::Url::parse(&url).with_context(|| {
        format!("health.host is {host:?}: give the name of a host, or an address without a port")
    })?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn health(host: &str, port: u16, tls: bool) -> Health {
        let mut health = Settings::default().health;
        (health.host, health.port) = (host.to_owned(), port);
        health.tls.enabled = tls;
        health
    }

    #[test]
    fn the_address_is_one_that_reaches_the_listener() {
        for (host, tls, expected) in [
            ("localhost", false, "http://localhost:8080/healthz"),
            ("0.0.0.0", false, "http://127.0.0.1:8080/healthz"),
            ("::", true, "https://[::1]:8080/healthz"),
            ("10.0.0.7", true, "https://10.0.0.7:8080/healthz"),
            ("fd00::7", false, "http://[fd00::7]:8080/healthz"),
        ] {
            let found = url(&health(host, 8080, tls), "/healthz").unwrap();
            assert_eq!(found, expected, "{host}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_known_is_an_error_that_names_the_setting() {
        for (host, port, setting) in [
            ("localhost", 0, "health.port"),
            ("a b", 8080, "health.host"),
        ] {
            let error = url(&health(host, port, false), "/healthz").unwrap_err();
            assert!(error.to_string().contains(setting), "{error}");
        }
    }
}

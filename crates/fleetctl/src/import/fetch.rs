//! Asks an etcd v2 for everything below a prefix.

use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::cli::without_password;
use crate::client::{TlsFiles, http_client};

/// The answer of the first server that has one, whatever it says.
///
/// # Errors
/// No server answers.
pub(crate) async fn fetch(
    endpoints: &str,
    prefix: &str,
    tls: &TlsFiles,
    time: Duration,
) -> anyhow::Result<Vec<u8>> {
    let mut failures = Vec::new();
    for endpoint in endpoints
        .split(',')
        .map(str::trim)
        .filter(|endpoint| !endpoint.is_empty())
    {
        let url = format!(
            "{}/v2/keys/{}/?recursive=true&quorum=true",
            endpoint.trim_end_matches('/'),
            prefix.trim_matches('/')
        );
        match get(&url, tls, time).await {
            Ok(answer) => return Ok(answer),
            Err(error) => failures.push(format!("{}: {error:#}", without_password(endpoint))),
        }
    }
    if failures.is_empty() {
        bail!("--endpoints names no server");
    }
    bail!("no etcd v2 answers: {}", failures.join("; "))
}

async fn get(url: &str, tls: &TlsFiles, time: Duration) -> anyhow::Result<Vec<u8>> {
    let request = http_client(url, tls)?.get(url).timeout(time);
    let response = request.send().await.context("no answer")?;
    let body = response.bytes().await.context("the answer broke off")?;
    Ok(body.to_vec())
}

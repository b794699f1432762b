//! Reads everything below a prefix from an etcd v2.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::dump::check_answer;
use crate::cli::without_password;
use crate::client::{TlsFiles, body, http_client};

const ANSWER_MAX: usize = 1 << 30;

/// The response of the first server that answers as etcd v2 does, including a refusal.
///
/// # Errors
/// No server does.
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
    let body = body(response, ANSWER_MAX).await;
    let body = body.context("the answer broke off")?;
    let body = body.context("the answer is too long")?;
    check_answer(&body)?;
    Ok(body)
}

//! Finds out why an etcd server is unreachable. The client behind `crate::etcd` distributes calls over its
//! connections, and reports only a timeout if it can make none. So this module connects to each server separately.

use std::future::poll_fn;

use anyhow::anyhow;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::transport::Endpoint;

use crate::etcd::Settings;

/// The fault of each unreachable server; empty if all can be connected to.
pub(super) async fn diagnose(settings: &Settings) -> Vec<String> {
    let mut faults = Vec::new();
    for url in &settings.endpoints {
        let checked = timeout(settings.connect_timeout, check(url, settings)).await;
        let checked = checked.unwrap_or_else(|_| Err(anyhow!("it does not answer")));
        faults.extend(checked.err().map(|fault| format!("{url}: {fault:#}")));
    }
    faults
}

async fn check(url: &str, settings: &Settings) -> anyhow::Result<()> {
    let mut endpoint = Endpoint::from_shared(url.to_owned())?;
    if let Some(tls) = &settings.tls {
        endpoint = endpoint.tls_config(tls.options())?;
    }
    let connected = endpoint.connect().await;
    let mut channel = connected.map_err(|error| cause("cannot connect", error))?;
    if settings.tls.is_some() {
        // With TLS 1.3 a server refuses our certificate only after the handshake. Any answer will do.
        let request = http::Request::get(url).body(Body::empty())?;
        let closed = |error| cause("it closes the connection", error);
        let ready = poll_fn(|context| channel.poll_ready(context)).await;
        ready.map_err(closed)?;
        channel.call(request).await.map_err(closed)?;
    }
    Ok(())
}

/// The innermost cause, which names why a connection failed.
fn cause(what: &str, error: tonic::transport::Error) -> anyhow::Error {
    anyhow!("{what}: {}", anyhow::Error::from(error).root_cause())
}

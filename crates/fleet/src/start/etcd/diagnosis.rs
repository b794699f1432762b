//! Finds out why an etcd server is unreachable. The client behind `crate::etcd` distributes calls over its
//! connections, and reports only a timeout if it can make none. So this module connects to each server separately.

use std::io::{ErrorKind, Read as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use reqwest::Url;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Stream};

use crate::etcd::{EtcdTls, Settings};
use hyperfleet_server_kit::tls;

/// How long a server may take to refuse our certificate: with TLS 1.3 the refusal comes after the handshake.
const OBJECTION: Duration = Duration::from_millis(500);
/// ALPN protocol of gRPC.
const PROTOCOL: &[u8] = b"h2";

/// The fault of each unreachable server; empty if all can be connected to. Blocks the calling thread.
pub(super) fn diagnose(settings: &Settings) -> Vec<String> {
    let faults = settings.endpoints.iter().filter_map(|url| {
        let fault = check(url, settings).err()?;
        Some(format!("{url}: {fault:#}"))
    });
    faults.collect()
}

fn check(url: &str, settings: &Settings) -> anyhow::Result<()> {
    let url: Url = url.parse()?;
    let host = url.host_str().context("it has no host")?;
    // As in a URL, IPv6 addresses are in brackets there.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(2379);
    let socket = connect(host, port, settings.connect_timeout)?;
    match &settings.tls {
        None => Ok(()),
        Some(tls) => shake_hands(tls, host, socket, settings.connect_timeout),
    }
}

fn connect(host: &str, port: u16, time: Duration) -> anyhow::Result<TcpStream> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.context("its name cannot be resolved")?;
    let mut last = anyhow!("its name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, time) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = anyhow!("cannot connect: {error}"),
        }
    }
    Err(last)
}

fn shake_hands(
    tls: &EtcdTls,
    host: &str,
    mut socket: TcpStream,
    time: Duration,
) -> anyhow::Result<()> {
    socket.set_read_timeout(Some(time))?;
    socket.set_write_timeout(Some(time))?;
    let name = tls.server_name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name).context("its name cannot stand in a certificate")?;
    let mut connection = ClientConnection::new(Arc::new(config(tls)?), name)?;
    while connection.is_handshaking() {
        let step = connection.complete_io(&mut socket);
        step.map_err(|error| anyhow!("no TLS: {}", tls_message(&error)))?;
    }
    socket.set_read_timeout(Some(OBJECTION))?;
    match Stream::new(&mut connection, &mut socket).read(&mut [0; 1]) {
        Err(error) if !is_silence(error.kind()) => {
            bail!("it closes the connection: {}", tls_message(&error))
        }
        _ => Ok(()),
    }
}

fn config(tls: &EtcdTls) -> anyhow::Result<ClientConfig> {
    let roots = tls::authorities(&tls.authorities_pem)?;
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match &tls.identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let chain: Result<Vec<_>, _> =
                CertificateDer::pem_slice_iter(&identity.certificate_pem).collect();
            let key = PrivateKeyDer::from_pem_slice(&identity.key_pem)?;
            config.with_client_auth_cert(chain?, key)?
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn is_silence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The message of TLS without that of the IO error around it.
fn tls_message(error: &std::io::Error) -> String {
    if is_silence(error.kind()) {
        return "it does not answer".to_owned();
    }
    let tls = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    tls.map_or_else(|| error.to_string(), ToString::to_string)
}

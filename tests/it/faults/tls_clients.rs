//! Clients over TLS that take their time: they get no more of it than others.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::program::Program;
use super::tls::Mounted;
use crate::support::{PATIENCE, TestDatabase};

/// A program with TLS on its listeners and short times, and what its clients trust.
struct Hasty {
    api: String,
    health: String,
    connector: TlsConnector,
    _program: Program,
}

impl Hasty {
    async fn start() -> Self {
        let mounted = Mounted::new();
        let short = "{server: {timeouts: {read: 1s, idle: 1s}, ";
        let settings = mounted.settings().replacen("{server: {", short, 1);
        let database = TestDatabase::create().await;
        let mut program = Program::serve_with(&database, &settings, &[]);
        let (api, health) = (
            program.address("api").await,
            program.address("health").await,
        );
        program.serving(database).await;
        hyperfleet_server_kit::crypto::install();
        let mut trusted = RootCertStore::empty();
        let certificate = std::fs::read(mounted.file("tls.crt")).unwrap();
        let certificate = CertificateDer::from_pem_slice(&certificate).unwrap();
        trusted.add(certificate).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Self {
            api,
            health,
            connector: TlsConnector::from(Arc::new(config)),
            _program: program,
        }
    }

    /// A connection whose first request is answered.
    async fn idle_connection(&self, address: &str, path: &str) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = self.connector.connect(name, stream).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        stream
    }
}

#[tokio::test]
async fn later_heads_that_drip_are_cut_over_tls_too() {
    let hasty = Hasty::start().await;
    for (address, path) in [(&hasty.api, "/api/hyperfleet"), (&hasty.health, "/healthz")] {
        let mut stream = hasty.idle_connection(address, path).await;
        let drip = async {
            while stream.write_all(b"G").await.is_ok() && stream.flush().await.is_ok() {
                sleep(Duration::from_millis(100)).await;
            }
        };
        let cut = timeout(PATIENCE, drip).await;
        assert!(cut.is_ok(), "{path}: it is still waited for");
        // The listener goes on.
        hasty.idle_connection(address, path).await;
    }
}

#[tokio::test]
async fn connections_that_idle_are_closed_over_tls_too() {
    let hasty = Hasty::start().await;
    let mut stream = hasty.idle_connection(&hasty.api, "/api/hyperfleet").await;
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    let _ = read.expect("the connection is closed");
    assert!(rest.ends_with(b"}"), "{}", String::from_utf8_lossy(&rest));
}

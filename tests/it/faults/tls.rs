//! TLS of the listeners: what is spoken, what is refused, and certificates that are replaced.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use reqwest::Certificate;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::program::Program;
use super::until;
use crate::support::{PATIENCE, TestDatabase, http_client, sum};

/// A folder with certificates as an orchestrator mounts it: `tls.crt` and `tls.key` lead through a
/// link that is turned to replace both at once.
pub(super) struct Mounted {
    folder: TempDir,
    versions: usize,
}

impl Mounted {
    pub(super) fn new() -> Self {
        let mut mounted = Self {
            folder: tempfile::tempdir().unwrap(),
            versions: 0,
        };
        mounted.replace(&signed());
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), mounted.file(name)).unwrap();
        }
        mounted
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn replace(&mut self, pair: &(String, String)) {
        self.versions += 1;
        let version = format!("..{}", self.versions);
        std::fs::create_dir(self.file(&version)).unwrap();
        std::fs::write(self.file(&version).join("tls.crt"), &pair.0).unwrap();
        std::fs::write(self.file(&version).join("tls.key"), &pair.1).unwrap();
        symlink(&version, self.file("..new")).unwrap();
        std::fs::rename(self.file("..new"), self.file("..data")).unwrap();
    }

    /// Settings with TLS on the listener of the API, and on the others by its files.
    pub(super) fn settings(&self) -> String {
        format!(
            "{{server: {{tls: {{enabled: true, cert_file: {}, key_file: {}}}}}, \
              health: {{port: 0, shutdown_delay: 0s, tls: {{enabled: true}}}}, metrics: {{port: 0}}}}",
            self.file("tls.crt").display(),
            self.file("tls.key").display()
        )
    }
}

/// A certificate for this machine with its key, both as PEM.
fn signed() -> (String, String) {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

/// The status of a request over TLS by a new connection, if the certificate is the one that is trusted.
async fn status(address: &str, path: &str, trusted: &str) -> Option<u16> {
    hyperfleet_server_kit::crypto::install();
    let certificate = Certificate::from_pem(trusted.as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([certificate])
        .build()
        .unwrap();
    let answer = client.get(format!("https://{address}{path}")).send().await;
    Some(answer.ok()?.status().as_u16())
}

const CLUSTERS: &str = "/api/hyperfleet/v1/clusters";

#[tokio::test]
async fn a_replaced_certificate_is_used_and_a_broken_one_ignored() {
    let database = TestDatabase::create().await;
    let mut mounted = Mounted::new();
    let first = std::fs::read_to_string(mounted.file("tls.crt")).unwrap();
    let mut program = Program::serve_with(&database, &mounted.settings(), &[]);
    let (address, health) = (
        program.address("api").await,
        program.address("health").await,
    );
    let _api = program.serving(database).await;
    assert_eq!(status(&address, CLUSTERS, &first).await, Some(200));
    assert_eq!(status(&health, "/readyz", &first).await, Some(200));
    assert!(
        program.output().contains("health.tls names no files"),
        "{}",
        program.output()
    );

    let second = signed();
    mounted.replace(&second);
    until("the new certificate is used", async || {
        status(&address, CLUSTERS, &second.0).await == Some(200)
            && status(&health, "/readyz", &second.0).await == Some(200)
    })
    .await;
    assert_eq!(status(&address, CLUSTERS, &first).await, None);

    let other = KeyPair::generate().unwrap().serialize_pem();
    for broken in [
        (second.0.clone(), other),
        ("nonsense".to_owned(), second.1.clone()),
    ] {
        mounted.replace(&broken);
        let before = program.output().matches("certificate not replaced").count();
        until("the fault is said", async || {
            program.output().matches("certificate not replaced").count() > before
        })
        .await;
        assert_eq!(status(&address, CLUSTERS, &second.0).await, Some(200));
    }
    let third = signed();
    mounted.replace(&third);
    until("the next good one is used", async || {
        status(&address, CLUSTERS, &third.0).await == Some(200)
    })
    .await;
}

#[tokio::test]
async fn unreadable_files_are_logged_once_and_the_old_ones_stay() {
    let database = TestDatabase::create().await;
    let mounted = Mounted::new();
    let trusted = std::fs::read_to_string(mounted.file("tls.crt")).unwrap();
    let mut program = Program::serve_with(&database, &mounted.settings(), &[]);
    let (address, metrics) = (
        program.address("api").await,
        program.address("metrics").await,
    );
    let _api = program.serving(database).await;
    let failures = async || {
        let scraped = http_client().get(format!("http://{metrics}/metrics"));
        let text = scraped.send().await.unwrap().text().await.unwrap();
        let name = "hyperfleet_api_tls_certificate_reload_failures_total";
        assert!(text.contains(name), "{text}");
        sum(&text, name, &[("listener", "api")])
    };
    until("it is counted from the beginning", async || {
        failures().await.abs() < 0.5
    })
    .await;
    let (link, elsewhere) = (mounted.file("..data"), mounted.file("..elsewhere"));
    std::fs::rename(&link, &elsewhere).unwrap();
    until("it goes on to be counted", async || failures().await > 3.5).await;
    assert_eq!(status(&address, CLUSTERS, &trusted).await, Some(200));
    std::fs::rename(&elsewhere, &link).unwrap();
    until("it is over", async || {
        program.output().contains("certificate files valid again")
    })
    .await;
    assert_eq!(status(&address, CLUSTERS, &trusted).await, Some(200));
    // One line for each listener.
    let said = program.output();
    let lines = |words: &str| said.lines().filter(|line| line.contains(words)).count();
    assert_eq!(lines("certificate not replaced"), 2, "{said}");
    assert_eq!(lines("fault\":\"cannot read"), 2, "{said}");
    assert!(!said.contains("certificate replaced"), "{said}");
}

/// What a server says to these bytes before it closes the connection.
async fn response_to(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut said = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut said)).await;
    // A connection that is reset is closed, too.
    let _ = read.expect("the connection is closed");
    said
}

#[tokio::test]
async fn clients_of_another_protocol_are_cut_without_a_log_line() {
    let database = TestDatabase::create().await;
    let mounted = Mounted::new();
    let trusted = std::fs::read_to_string(mounted.file("tls.crt")).unwrap();
    let mut program = Program::serve_with(&database, &mounted.settings(), &[]);
    let (address, metrics) = (
        program.address("api").await,
        program.address("metrics").await,
    );
    let _api = program.serving(database).await;
    let request = format!("GET {CLUSTERS} HTTP/1.1\r\nHost: x\r\n\r\n");
    // The beginning of a handshake.
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let lines = program.output().lines().count();
    for _ in 0..20 {
        let said = response_to(&address, request.as_bytes()).await;
        assert!(!said.starts_with(b"HTTP/"), "{said:?}");
        let said = response_to(&metrics, hello).await;
        assert!(
            said.is_empty() || said.starts_with(b"HTTP/1.1 400"),
            "{said:?}"
        );
    }
    let said = program.output();
    assert_eq!(said.lines().count(), lines, "{said}");
    assert_eq!(status(&address, CLUSTERS, &trusted).await, Some(200));
}

/// The first bytes of a handshake of TLS 1.1.
const OLD_HELLO: &[u8] = &[
    0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 2, 0, 0x2f, 1, 0,
];

#[tokio::test]
async fn old_versions_of_tls_are_refused_and_handshakes_end_in_time() {
    let database = TestDatabase::create().await;
    let mounted = Mounted::new();
    let settings = mounted
        .settings()
        .replacen("{server: {", "{server: {timeouts: {read: 1s}, ", 1);
    let mut program = Program::serve_with(&database, &settings, &[]);
    let address = program.address("api").await;
    // An alert that is fatal: (21) ... level 2.
    let said = response_to(&address, OLD_HELLO).await;
    assert_eq!(
        (said.first(), said.get(5)),
        (Some(&21), Some(&2)),
        "{said:?}"
    );
    assert!(response_to(&address, &OLD_HELLO[..9]).await.is_empty());
}

async fn refusal(settings: &str) -> String {
    let database = TestDatabase::at("postgres://nobody@127.0.0.1:1/nothing".parse().unwrap());
    let mut program = Program::serve_with(&database, settings, &[]);
    assert_eq!(
        program.ended().await.code(),
        Some(2),
        "{}",
        program.output()
    );
    program.output()
}

#[tokio::test]
async fn unusable_certificates_stop_the_start_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (certificate, key) = signed();
    std::fs::write(file("good.crt"), certificate).unwrap();
    std::fs::write(file("good.key"), key).unwrap();
    std::fs::write(file("other.key"), signed().1).unwrap();
    std::fs::write(file("empty"), "").unwrap();
    let tls = |cert: &str, key: &str| {
        format!(
            "tls: {{enabled: true, cert_file: '{}', key_file: '{}'}}",
            file(cert),
            file(key)
        )
    };
    for (settings, words) in [
        (
            format!("{{server: {{{}}}}}", tls("good.crt", "other.key")),
            vec![
                "server.tls (from ",
                "other.key",
                "does not match the certificate",
            ],
        ),
        (
            format!(
                "{{server: {{{}}}, health: {{{}}}}}",
                tls("none", "good.key"),
                tls("empty", "good.key")
            ),
            vec![
                "server.tls.cert_file (from ",
                "): cannot read",
                "health.tls (from ",
                "): cannot use",
                "no certificate",
            ],
        ),
        (
            format!("{{metrics: {{{}}}}}", tls("good.crt", "good.crt")),
            vec!["metrics.tls (from ", "): cannot use", "no private key"],
        ),
        (
            "{server: {tls: {enabled: true}}, health: {tls: {enabled: true, cert_file: x}}}"
                .to_owned(),
            vec![
                "server.tls.cert_file is not set",
                "health.tls.key_file is not set",
            ],
        ),
    ] {
        let said = refusal(&settings).await;
        for word in words {
            assert!(said.contains(word), "no {word} in: {said}");
        }
    }
}

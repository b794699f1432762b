//! Servers and passwords that no later attempt could connect with: the start ends at once and says why.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hyperfleet_devkit::{Durability, PrivatePostgres};
use hyperfleet_testkit::scratch_root;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::program::Program;
use crate::support::{Authority, Proxy, TestDatabase};

const VERSION_1: &str = include_str!("../../fixtures/server-certificates/version-1.crt");
const AUTHORITY: &str = include_str!("../../fixtures/server-certificates/authority.crt");
const KEY: &str = include_str!("../../fixtures/server-certificates/server.key");

/// Runs a command to its end; returns its code and output.
async fn ended(args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut program = Program::start_with(args, variables);
    let status = program.ended().await;
    (status.code(), program.plain_output())
}

/// TLS with a certificate that rustls itself would refuse to serve.
fn with_certificate(certificate: &str, key: &str) -> ServerConfig {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = CertifiedKey::new(chain, any_supported_type(&key).unwrap());
    ServerConfig::builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
}

/// PostgreSQL with TLS, on a port of its own.
async fn serve_tls(config: ServerConfig, socket: String, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tasks.spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            tokio::spawn(encrypt(client, acceptor, socket));
        }
    });
    port
}

async fn encrypt(mut client: TcpStream, acceptor: TlsAcceptor, socket: String) {
    let mut request = [0; 8];
    client.read_exact(&mut request).await.unwrap();
    assert_eq!(request, *b"\0\0\0\x08\x04\xd2\x16\x2f", "SSLRequest");
    client.write_all(b"S").await.unwrap();
    // A client that does not like the certificate ends here.
    if let Ok(mut client) = acceptor.accept(client).await {
        let mut server = UnixStream::connect(socket).await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

/// A database behind servers of each certificate, and the authorities of these.
struct Servers {
    name: String,
    ports: BTreeMap<&'static str, u16>,
    folder: TempDir,
    _proxy: Proxy,
    _tasks: JoinSet<()>,
}

impl Servers {
    async fn start() -> Self {
        hyperfleet_server_kit::crypto::install();
        let database = TestDatabase::create().await;
        let proxy = Proxy::start(database.options());
        let through = proxy.options(database.options());
        let socket = format!(".s.PGSQL.{}", through.get_port());
        let socket = through.get_socket().unwrap().join(socket);
        let socket = socket.to_str().unwrap();
        let (trusted, key) = (Authority::new(), KeyPair::generate().unwrap());
        let nameless = CertificateParams::default().self_signed(&key);
        let nameless = nameless.unwrap().pem();
        let (mut tasks, mut ports) = (JoinSet::new(), BTreeMap::new());
        for (name, config) in [
            ("version-1", with_certificate(VERSION_1, KEY)),
            ("authority", with_certificate(AUTHORITY, KEY)),
            (
                "nameless",
                with_certificate(&nameless, &key.serialize_pem()),
            ),
            ("trusted", trusted.server("localhost")),
        ] {
            let port = serve_tls(config, socket.to_owned(), &mut tasks).await;
            ports.insert(name, port);
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("version-1", VERSION_1),
            ("authority", AUTHORITY),
            ("nameless", &nameless),
            ("trusted", &std::fs::read_to_string(trusted.file()).unwrap()),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self {
            name: through.get_database().unwrap().to_owned(),
            ports,
            folder,
            _proxy: proxy,
            _tasks: tasks,
        }
    }

    /// Flags for connecting to a server in a mode, with these authorities or none.
    fn flags(&self, server: &str, mode: &str, roots: &str) -> Vec<String> {
        let (port, name) = (self.ports[server], &self.name);
        let url = format!("postgres://postgres@localhost:{port}/{name}?sslmode={mode}");
        let mut flags = vec!["--database-url".to_owned(), url];
        if !roots.is_empty() {
            let roots = self.folder.path().join(roots).display().to_string();
            flags.extend(["--db-root-cert-file".to_owned(), roots]);
        }
        flags
    }
}

#[tokio::test]
async fn certificates_that_cannot_be_used_end_the_start() {
    let servers = Servers::start().await;
    for (server, mode, roots, why) in [
        ("version-1", "require", "", "version 1"),
        ("version-1", "prefer", "", "version 1"),
        ("version-1", "verify-ca", "version-1", "version 1"),
        ("authority", "verify-ca", "authority", "CA:TRUE"),
        (
            "nameless",
            "verify-full",
            "nameless",
            "no subject alternative name",
        ),
        ("trusted", "verify-ca", "authority", "a trusted authority"),
    ] {
        let flags = servers.flags(server, mode, roots);
        let mut args = vec!["serve", "--server-host=127.0.0.1", "--server-port=0"];
        args.extend(["--health-port=0", "--metrics-port=0"]);
        args.push("--server-jwt-enabled=false");
        args.extend(flags.iter().map(String::as_str));
        let (code, said) = ended(&args, &[]).await;
        assert_eq!(code, Some(1), "{server} {mode}: {said}");
        assert!(said.contains(why), "{server} {mode}: no {why} in: {said}");
        assert!(!said.contains("waiting for the database"), "{said}");
    }
}

#[tokio::test]
async fn certificates_are_verified_as_the_mode_says() {
    let servers = Servers::start().await;
    for (server, mode, roots) in [
        ("authority", "require", ""),
        ("authority", "prefer", ""),
        ("nameless", "verify-ca", "nameless"),
        ("trusted", "verify-full", "trusted"),
    ] {
        let flags = servers.flags(server, mode, roots);
        let mut args = vec!["migrate", "status"];
        args.extend(flags.iter().map(String::as_str));
        let (code, said) = ended(&args, &[]).await;
        assert_eq!(code, Some(0), "{server} {mode}: {said}");
    }
}

#[tokio::test]
async fn the_broken_certificate_of_several_is_named() {
    let broken = VERSION_1.replacen("MII", "MIIMII", 1);
    let bundle = format!("{AUTHORITY}{broken}{AUTHORITY}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.pem");
    std::fs::write(&file, bundle).unwrap();
    let file = file.to_str().unwrap();
    let args = ["config", "check", "--db-root-cert-file", file];
    let (_, said) = ended(&args, &[]).await;
    for word in ["database.ssl.root_cert_file", file, "certificate 2"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
}

/// Lets everyone but `postgres` in by password.
async fn ask_for_passwords(folder: &Path, connection: &mut PgConnection) {
    let rules = "local all postgres trust\nlocal all all scram-sha-256\n";
    std::fs::write(folder.join("data/pg_hba.conf"), rules).unwrap();
    let reload = "SELECT pg_reload_conf()";
    sqlx::raw_sql(reload)
        .execute(&mut *connection)
        .await
        .unwrap();
    let rule = "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256'";
    let rules: i64 = sqlx::query_scalar(rule)
        .fetch_one(connection)
        .await
        .unwrap();
    assert_eq!(rules, 1);
}

#[tokio::test]
async fn unsendable_passwords_end_the_start_and_are_not_logged() {
    let folder = scratch_root().join(format!("hyperfleet-passwords-{}", std::process::id()));
    let server = PrivatePostgres::start(&folder, Durability::ThrownAway).unwrap();
    let mut admin = PgConnection::connect(&server.url("postgres"))
        .await
        .unwrap();
    ask_for_passwords(&folder, &mut admin).await;
    let long = "x".repeat(200);
    for (number, (password, is_sent)) in [
        ("plain".to_owned(), true),
        ("a b\u{a0}c".to_owned(), true),
        ("pä\u{feff}ss".to_owned(), true),
        ("\u{feff}mark".to_owned(), true),
        (long, true),
        ("tab\there".to_owned(), false),
        ("pä😀ss".to_owned(), false),
        ("private\u{e000}".to_owned(), false),
        ("new\u{1f98a}er".to_owned(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let role = format!("role_{number}");
        let create = format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'");
        let created = sqlx::raw_sql(AssertSqlSafe(create))
            .execute(&mut admin)
            .await;
        created.unwrap();
        let file = folder.join("password");
        std::fs::write(&file, &password).unwrap();
        for variable in [
            ("HYPERFLEET_DATABASE_PASSWORD", password.as_str()),
            ("HYPERFLEET_DATABASE_PASSWORD_FILE", file.to_str().unwrap()),
        ] {
            let mut args = vec!["migrate", "status", "--db-host", folder.to_str().unwrap()];
            args.extend(["--db-name", "postgres", "--db-username", &role]);
            let (code, said) = ended(&args, &[variable]).await;
            // Without a schema, the status of one that is let in is 3.
            assert_eq!(
                code,
                Some(if is_sent { 3 } else { 1 }),
                "{password}: {said}"
            );
            let is_named = said.contains("SCRAM does not allow");
            assert_eq!(is_named, !is_sent, "{password}: {said}");
            let odd = password
                .chars()
                .filter(|c| !c.is_ascii_graphic() && *c != ' ');
            for part in odd.filter(|c| *c != '\t' && *c != 'ä') {
                assert!(!said.contains(part), "{part:?} in: {said}");
            }
        }
    }
}

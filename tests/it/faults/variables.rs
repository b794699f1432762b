//! Settings override the variables of other PostgreSQL clients.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::program::{FREE_PORTS, Program};
use crate::support::{PATIENCE, TestDatabase};

/// What a client without TLS begins with (PostgreSQL 17 manual, §53.7).
const PROTOCOL_3: i32 = 3 << 16;

/// A server that asks for a password and goes away.
struct Listening(TcpListener);

impl Listening {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// All that it hears of the first client before that knows whether it is let in.
    async fn heard(&self) -> (String, String) {
        let heard = async {
            loop {
                let (mut stream, _) = self.0.accept().await.unwrap();
                // A connection that is given up while it begins, on a busy machine.
                let Some(startup) = message(&mut stream).await else {
                    continue;
                };
                let (protocol, parameters) = startup.split_at(4);
                let protocol = i32::from_be_bytes(protocol.try_into().unwrap());
                assert_eq!(protocol, PROTOCOL_3, "it asks for something else first");
                stream
                    .write_all(b"R\0\0\0\x08\0\0\0\x03") // AuthenticationCleartextPassword
                    .await
                    .unwrap();
                // A program that has been ended may have connected once more.
                let Ok(kind) = stream.read_u8().await else {
                    continue;
                };
                assert_eq!(kind, b'p');
                let Some(password) = message(&mut stream).await else {
                    continue;
                };
                break [parameters, &password]
                    .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            }
        };
        let [parameters, password] = timeout(PATIENCE, heard).await.expect("it connects");
        (parameters, password)
    }
}

/// The rest of a message whose length comes next; none if the connection ends before.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = usize::try_from(stream.read_i32().await.ok()?).unwrap();
    let mut bytes = vec![0; length - 4];
    stream.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}

/// A home with passwords in it for everybody.
fn home(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let file = folder.join(".pgpass");
    std::fs::write(&file, "*:*:*:*:from-pgpass\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn nonsense(home: &str) -> Vec<(&str, &str)> {
    let mut variables: Vec<_> = [
        "PGHOST",
        "PGHOSTADDR",
        "PGPORT",
        "PGUSER",
        "PGPASSWORD",
        "PGDATABASE",
        "PGAPPNAME",
        "PGSSLROOTCERT",
        "PGSSLCERT",
        "PGSSLKEY",
    ]
    .map(|name| (name, "nonsense"))
    .into();
    variables.push(("PGSSLMODE", "verify-full"));
    variables.push(("HOME", home));
    variables
}

#[tokio::test]
async fn settings_override_the_variables_of_postgres_clients() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let passfile = format!("{home}/.pgpass");
    let mut nonsense = nonsense(&home);
    nonsense.push(("PGPASSFILE", &passfile));
    let server = Listening::start().await;
    let port = server.port().to_string();
    let at = format!("127.0.0.1:{port}");
    let by_parts = ["--db-host=127.0.0.1", "--db-port", &port];
    let by_url = |user: &str| format!("--database-url=postgres://{user}@{at}/n?sslmode=disable");
    let (bare, full) = (by_url("u"), by_url("u:hush"));
    for (args, password) in [
        (&by_parts[..], ""),
        (&[bare.as_str()], ""),
        (&[full.as_str()], "hush"),
    ] {
        let args = [&["migrate", "status"], args].concat();
        let mut heard = Vec::new();
        for variables in [&[][..], &nonsense] {
            let _program = Program::start_with(&args, variables);
            heard.push(server.heard().await);
        }
        assert_eq!(heard[0], heard[1], "{args:?}");
        assert_eq!(heard[1].1.trim_end_matches('\0'), password, "{args:?}");
        assert!(heard[1].0.contains("application_name\0hyperfleet-api"));
        assert!(!heard[1].0.contains("nonsense"), "{heard:?}");
    }
}

#[tokio::test]
async fn a_service_among_variables_of_others_serves() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let database = TestDatabase::create().await;
    let settings = folder.path().join("config.yaml");
    std::fs::write(&settings, FREE_PORTS).unwrap();
    let args = ["--config", settings.to_str().unwrap()];
    let mut program = Program::serve_by_flags(&database, &args, &nonsense(&home));
    let api = program.serving(database).await;
    let made = api.cluster("abc").await;
    let patched = api.patch(&made, json!({"labels": {"a": "b"}})).await;
    assert_eq!(patched.status, 200);
}

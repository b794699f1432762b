//! A server that is there and says nothing: its machine is gone, or the network swallows packets.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use serde_json::Value;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::{assert_unavailable, until};
use crate::support::{TestApi, TestDatabase};

/// Stands before PostgreSQL. Connections of a time that is over stay open, and nothing passes.
struct Door {
    folder: TempDir,
    time: Arc<AtomicUsize>,
}

impl Door {
    fn before(target: &PgConnectOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!(".s.PGSQL.{}", target.get_port());
        let listener = UnixListener::bind(folder.path().join(&name)).unwrap();
        let server = target.get_socket().unwrap().join(&name);
        let time = Arc::new(AtomicUsize::new(0));
        let shared = time.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server.clone(), shared.clone()));
            }
        });
        Self { folder, time }
    }

    /// Its clients receive nothing from now on.
    fn fall_silent(&self) {
        self.time.fetch_add(1, Ordering::SeqCst);
    }
}

async fn pass(mut client: UnixStream, server: impl AsRef<Path>, time: Arc<AtomicUsize>) {
    let began = time.load(Ordering::SeqCst);
    let mut server = UnixStream::connect(server).await.unwrap();
    let (mut there, mut back) = ([0; 8192], [0; 8192]);
    loop {
        let (from_client, count) = tokio::select! {
            read = client.read(&mut there) => (true, read.unwrap_or(0)),
            read = server.read(&mut back) => (false, read.unwrap_or(0)),
        };
        if time.load(Ordering::SeqCst) != began {
            // Swallowed, and the connection stays open.
            std::future::pending::<()>().await;
        }
        let passed = if from_client {
            server.write_all(&there[..count]).await
        } else {
            client.write_all(&back[..count]).await
        };
        if count == 0 || passed.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn silent_connections_are_closed_and_others_serve() {
    let database = TestDatabase::create().await;
    let door = Door::before(&database.options());
    let store = Store::new(Settings {
        connect: database.options().socket(door.folder.path()),
        connections_max: 4,
        acquire_seconds_max: 20,
        statement_milliseconds_max: 300,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    let cluster = api.cluster("abc").await;
    assert_eq!(api.get(&cluster).await.status, 200);
    door.fall_silent();
    // Each of the two connections is waited for once: the statement's time, and five seconds.
    let answer = api.send("PATCH", &cluster, serde_json::json!({"labels": {"a": "b"}}));
    assert_unavailable(&answer.await, "a write");
    let read = api.try_send("GET", &cluster, &Value::Null).await.unwrap();
    assert!([200, 503].contains(&read.status), "{}", read.body);
    until("it serves again", async || {
        api.get(&cluster).await.status == 200
    })
    .await;
    let patched = api.send("PATCH", &cluster, serde_json::json!({"labels": {"a": "b"}}));
    assert_eq!(patched.await.status, 200);
}

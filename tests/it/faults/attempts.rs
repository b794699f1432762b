//! An attempt to connect that leads nowhere, as where one packet was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hyperfleet::domain::entity_config;
use hyperfleet::storage::postgres::{Keep, Settings, Store};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};

use crate::support::{TestApi, TestDatabase};

/// Stands before PostgreSQL, and answers nothing on the first of every two connections.
struct Deaf {
    folder: TempDir,
    accepted: Arc<AtomicU32>,
}

impl Deaf {
    fn before(database: &TestDatabase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!(".s.PGSQL.{}", database.options().get_port());
        let listener = UnixListener::bind(folder.path().join(&name)).unwrap();
        let server = database.options().get_socket().unwrap().join(&name);
        let accepted = Arc::new(AtomicU32::new(0));
        let count = accepted.clone();
        tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Ok((mut client, _)) = listener.accept().await {
                if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
                    unanswered.push(client);
                    continue;
                }
                let server = server.clone();
                tokio::spawn(async move {
                    let mut server = UnixStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { folder, accepted }
    }
}

#[tokio::test]
async fn an_attempt_to_connect_that_leads_nowhere_costs_no_request() {
    let database = TestDatabase::create().await;
    let deaf = Deaf::before(&database);
    let store = Store::new(Settings {
        connect: database.options().socket(deaf.folder.path()),
        connections_max: 1,
        acquire_seconds_max: 12,
        statement_milliseconds_max: 30_000,
        keep: Keep::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    assert_eq!(api.get("/clusters").await.status, 200);
    assert!(deaf.accepted.load(Ordering::SeqCst) >= 2);
}

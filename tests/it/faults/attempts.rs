//! Attempts to connect that lead nowhere, as where one packet was lost, or where the server has no room for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use crate::support::{TestApi, TestDatabase};

/// What becomes of a connection.
#[derive(Debug, Clone, Copy)]
enum Treatment {
    /// It is open and nothing is answered.
    Silent,
    /// It is closed at once.
    Closed,
    /// It reaches the server after that time.
    After(Duration),
}

/// Stands before PostgreSQL, and treats connections in turn.
struct Gate {
    folder: TempDir,
    accepted: Arc<AtomicUsize>,
}

impl Gate {
    fn before(database: &TestDatabase, treatments: &'static [Treatment]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!(".s.PGSQL.{}", database.options().get_port());
        let listener = UnixListener::bind(folder.path().join(&name)).unwrap();
        let server = database.options().get_socket().unwrap().join(&name);
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let time = match treatments[number % treatments.len()] {
                    Treatment::Silent => {
                        unanswered.push(client);
                        continue;
                    }
                    Treatment::Closed => continue,
                    Treatment::After(time) => time,
                };
                let server = server.clone();
                tokio::spawn(async move {
                    sleep(time).await;
                    let mut server = UnixStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { folder, accepted }
    }
}

async fn a_list_is_answered(treatments: &'static [Treatment]) {
    let database = TestDatabase::create().await;
    let gate = Gate::before(&database, treatments);
    let store = Store::new(Settings {
        connect: database.options().socket(gate.folder.path()),
        connections_max: 1,
        acquire_seconds_max: 12,
        statement_milliseconds_max: 30_000,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    assert_eq!(api.get("/clusters").await.status, 200);
    assert!(gate.accepted.load(Ordering::SeqCst) >= 2);
}

#[tokio::test]
async fn an_attempt_to_connect_that_leads_nowhere_costs_no_request() {
    a_list_is_answered(&[Treatment::Silent, Treatment::After(Duration::ZERO)]).await;
}

#[tokio::test]
async fn a_second_attempt_that_is_refused_does_not_end_the_first() {
    const SLOW: Duration = Duration::from_secs(4);
    a_list_is_answered(&[Treatment::After(SLOW), Treatment::Closed, Treatment::Silent]).await;
}

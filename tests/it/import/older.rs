//! A source that lacks what was imported: what it lacks is not taken for removed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;

use hyperfleet::app::import::{Error, ReadScope, RunOptions};
use hyperfleet::domain::import::Regression;
use hyperfleet_devkit::{Durability, PrivatePostgres};

use super::world::{PLAIN, World, cluster_id, pool_id, tally, verified};
use crate::support::{TestDatabase, until};

const OLDER: RunOptions = RunOptions {
    read: ReadScope::Older,
    ..PLAIN
};

/// A server whose data stay when it ends.
struct Server {
    url: String,
    end: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    async fn start(folder: &Path) -> Self {
        let (url_sender, url) = tokio::sync::oneshot::channel();
        let (end, ended) = mpsc::channel::<()>();
        let folder = folder.to_owned();
        let thread = std::thread::spawn(move || {
            let server = PrivatePostgres::start(&folder, Durability::Kept).unwrap();
            url_sender.send(server.url("postgres")).unwrap();
            let _: Result<(), _> = ended.recv();
            server.stop().unwrap();
        });
        Self {
            url: url.await.unwrap(),
            end: Some(end),
            thread: Some(thread),
        }
    }

    fn database(&self) -> TestDatabase {
        TestDatabase::at(self.url.parse().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// A server with a source of five clusters, and a copy of its files, which is not started.
async fn copied(folder: &Path) -> (World, Server) {
    let (original, copy) = (folder.join("original"), folder.join("copy"));
    let server = Server::start(&original).await;
    let world = World::fill_at(server.database(), 5).await;
    drop(server);
    let copied = Command::new("cp")
        .arg("-a")
        .args([&original, &copy])
        .status();
    assert!(copied.unwrap().success());
    (world, Server::start(&original).await)
}

/// The same target with another source.
fn from(world: &World, source: TestDatabase) -> World {
    World::of(
        source,
        TestDatabase::at(world.target.options()),
        world.registry.clone(),
    )
}

async fn refused(world: &World) -> Regression {
    match world.try_run(PLAIN).await {
        Err(Error::OlderSource(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// A new node pool, and more log.
const CHANGE: &str = "UPDATE resources SET generation = generation + 1;
    INSERT INTO resources (id, kind, name, owner_id, created_by, updated_by, spec)
    SELECT '01990000-0001-7000-8000-00000000ffff', 'NodePool', 'new', id, 'a', 'b', '{}'
    FROM resources WHERE name = 'cluster-1'";

#[tokio::test]
async fn an_older_copy_of_the_files_is_refused_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let (world, _original) = copied(folder.path()).await;
    world.run(PLAIN).await;
    world.there(CHANGE).await;
    assert_eq!(world.run(PLAIN).await.added, 1);
    let copy = Server::start(&folder.path().join("copy")).await;
    let older = from(&world, copy.database());
    assert_eq!(refused(&older).await, Regression::Behind);
    let count = "SELECT count(*) FROM resources";
    assert_eq!(world.target_value(count).await, 21);
    let report = older.run(OLDER).await;
    assert_eq!(
        (tally(&report), verified(&report)),
        ([0, 1, 20], [20, 0, 0])
    );
    // It goes on from there.
    assert_eq!(tally(&older.run(PLAIN).await), [0, 0, 20]);
}

#[tokio::test]
async fn a_standby_is_read_once_it_has_caught_up_and_refused_once_promoted() {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let (world, original) = copied(folder.path()).await;
    let data = folder.path().join("copy/data");
    let socket = folder.path().join("original");
    let primary = format!(
        "primary_conninfo = 'host={} user=postgres'\n",
        socket.display()
    );
    fs::write(data.join("standby.signal"), "").unwrap();
    fs::write(data.join("postgresql.auto.conf"), primary).unwrap();
    world.run(PLAIN).await;
    let copy = Server::start(&folder.path().join("copy")).await;
    let standby = from(&world, copy.database());
    let pause = "SELECT pg_wal_replay_pause()::text";
    standby.source_value(pause).await;
    let state = "SELECT pg_get_wal_replay_pause_state()";
    until("replay is paused", async || {
        standby.source_value(state).await == "paused"
    })
    .await;
    world.there(CHANGE).await;
    world.run(PLAIN).await;
    assert_eq!(refused(&standby).await, Regression::Behind);
    standby
        .source_value("SELECT pg_wal_replay_resume()::text")
        .await;
    until("it has caught up", async || {
        standby.try_run(PLAIN).await.is_ok()
    })
    .await;
    let report = standby.run(PLAIN).await;
    assert_eq!(
        (tally(&report), verified(&report)),
        ([0, 0, 21], [21, 0, 0])
    );
    world
        .there("UPDATE resources SET generation = generation + 1")
        .await;
    until("the change has come", async || {
        standby.run(PLAIN).await.changed > 0
    })
    .await;
    assert_eq!(verified(&standby.run(PLAIN).await), [21, 0, 0]);
    // The other way round nothing is missing, either.
    assert_eq!(tally(&world.run(PLAIN).await), [0, 0, 21]);
    drop(original);
    standby.source_value("SELECT pg_promote()").await;
    assert_eq!(refused(&standby).await, Regression::Timeline);
    let report = standby.run(OLDER).await;
    assert_eq!(verified(&report), [21, 0, 0]);
    assert_eq!(tally(&standby.run(PLAIN).await), [0, 0, 21]);
}

#[tokio::test]
async fn lower_generations_are_refused_before_anything_is_removed() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let pool = pool_id(1);
    world
        .there(&format!(
            "UPDATE resources SET generation = 1 WHERE id = '{}';
             DELETE FROM adapter_statuses WHERE resource_id = '{pool}';
             DELETE FROM resources WHERE id = '{pool}'",
            cluster_id(1)
        ))
        .await;
    let Regression::Generations { count, first } = refused(&world).await else {
        panic!("it is another reason")
    };
    assert_eq!((count, first.to_string()), (1, cluster_id(1)));
    let refused = world.try_run(PLAIN).await.unwrap_err().to_string();
    assert!(refused.contains("--allow-older-source"), "{refused}");
    assert_eq!(
        world.target_value("SELECT count(*) FROM resources").await,
        8
    );
    let report = world.run(OLDER).await;
    assert_eq!((tally(&report), verified(&report)), ([0, 1, 7], [7, 0, 0]));
}

#[tokio::test]
async fn a_table_that_was_restored_is_another_source() {
    let world = World::filled(1).await;
    world.run(PLAIN).await;
    world
        .there(
            "CREATE TABLE restored (LIKE resources INCLUDING ALL);
             INSERT INTO restored SELECT * FROM resources;
             DROP TABLE resources CASCADE;
             ALTER TABLE restored RENAME TO resources",
        )
        .await;
    let refused = world.try_run(OLDER).await.unwrap_err();
    assert!(matches!(refused, Error::OtherSource), "{refused:?}");
}

/// The server's user is another one.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

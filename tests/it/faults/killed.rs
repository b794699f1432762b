//! The service is killed while clients write.

use std::sync::Arc;

use hyperfleet_domain::entity_config;
use rustix::process::Signal;

use super::load::Load;
use super::program::{Folder, Program};
use super::until_only_client;
use crate::support::{TestDatabase, assert_sound};

/// The load reports for the required adapters itself.
const FLAGS: [&str; 3] = ["--server-port", "0", "--no-demo-adapter"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_leaves_nothing_half_done() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let api = program.serving(TestDatabase::at(database.options())).await;
    let load = Arc::new(Load::on_mortal(api));
    let writers = load.start();
    load.until_acknowledged(150).await;
    program.signal(Signal::KILL);
    program.ended().await;
    let known = load.end(writers).await;

    let mut direct = database.connect().await;
    until_only_client(&mut direct).await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    assert!(known.len() > 10, "{}", known.len());
    for known in known {
        known.assert_there(&api).await;
    }
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_dev_ends_postgres_and_the_next_one_continues() {
    let folder = Folder::new();
    let mut program = Program::dev_with(&folder, &FLAGS, &[]);
    let load = Arc::new(Load::on_mortal(program.serving(folder.database()).await));
    let writers = load.start();
    load.until_acknowledged(150).await;
    let postgres = folder.postgres();
    assert!(postgres.is_running());
    program.signal(Signal::KILL);
    program.ended().await;
    // At once: the predecessor may still be on its way out.
    let mut next = Program::dev_with(&folder, &FLAGS, &[]);
    let known = load.end(writers).await;
    postgres.ended().await;
    let api = next.serving(folder.database()).await;
    assert_ne!(folder.postgres(), postgres);
    assert!(known.len() > 10, "{}", known.len());
    for known in known {
        known.assert_there(&api).await;
    }
    let mut direct = folder.database().connect().await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
    drop(direct);
    next.signal(Signal::INT);
    assert!(next.ended().await.success(), "{}", next.output());
}

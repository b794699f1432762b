//! `dev` and the PostgreSQL that it starts.

use rustix::process::Signal;

use super::program::{Folder, Program};

#[tokio::test]
async fn an_interrupted_dev_stops_postgres_and_the_next_one_finds_its_data() {
    let folder = Folder::new();
    let mut first = Program::dev(&folder);
    let api = first.serving(folder.database()).await;
    let cluster = api.cluster("kept").await;
    let postgres = folder.postgres();
    first.signal(Signal::INT);
    assert!(first.ended().await.success(), "{}", first.said());
    assert!(!postgres.is_running());
    assert!(first.said().contains("Stopped."), "{}", first.said());

    let mut second = Program::dev(&folder);
    let api = second.serving(folder.database()).await;
    assert_eq!(api.get(&cluster).await.body["name"], "kept");
    second.signal(Signal::TERM);
    assert!(second.ended().await.success(), "{}", second.said());
}

#[tokio::test]
async fn a_killed_dev_leaves_no_postgres_behind() {
    let folder = Folder::new();
    let mut first = Program::dev(&folder);
    let cluster = first.serving(folder.database()).await.cluster("kept").await;
    let postgres = folder.postgres();
    first.signal(Signal::KILL);
    first.ended().await;
    postgres.ended().await;
    let mut second = Program::dev(&folder);
    let api = second.serving(folder.database()).await;
    assert_eq!(api.get(&cluster).await.status, 200);
}

#[tokio::test]
async fn a_second_dev_on_a_folder_says_why_it_cannot_start_and_harms_nothing() {
    let folder = Folder::new();
    let mut first = Program::dev(&folder);
    let api = first.serving(folder.database()).await;
    let cluster = api.cluster("kept").await;
    let postgres = folder.postgres();
    let mut second = Program::dev(&folder);
    assert!(!second.ended().await.success(), "{}", second.said());
    let said = second.said();
    let data = folder.data();
    for word in ["in use by another", data.to_str().unwrap(), "--data-dir"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
    assert_eq!(folder.postgres(), postgres);
    assert_eq!(api.get(&cluster).await.status, 200);
    // The log of the first one is still the first one's.
    first.signal(Signal::INT);
    assert!(first.ended().await.success(), "{}", first.said());
    let log = std::fs::read_to_string(data.join("log")).unwrap();
    assert!(log.contains("ready to accept connections"), "{log}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_and_postgres_is_not_left_running() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = folder.data();
    let args = [
        "dev",
        "--data-dir",
        data.to_str().unwrap(),
        "--server-port",
        &port,
    ];
    let mut program = Program::start(&args);
    assert!(!program.ended().await.success());
    let said = program.said();
    assert!(
        said.contains(&port) && said.contains("--server-port"),
        "{said}"
    );
    let left = data.join("data/postmaster.pid");
    super::until("PostgreSQL is gone", async || !left.exists()).await;
}

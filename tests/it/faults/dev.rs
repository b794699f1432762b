//! `dev` and the PostgreSQL that it starts.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::program::{Folder, Program};
use super::until;
use crate::support::TestDatabase;

#[tokio::test]
async fn an_interrupted_dev_stops_postgres_and_keeps_its_data() {
    let folder = Folder::new();
    let mut first = Program::dev(&folder);
    let api = first.serving(folder.database()).await;
    let cluster = api.cluster("kept").await;
    let postgres = folder.postgres();
    first.signal(Signal::INT);
    assert!(first.ended().await.success(), "{}", first.output());
    assert!(!postgres.is_running());
    assert!(first.output().contains("Stopped."), "{}", first.output());

    let mut second = Program::dev(&folder);
    let api = second.serving(folder.database()).await;
    assert_eq!(api.get(&cluster).await.body["name"], "kept");
    second.signal(Signal::TERM);
    assert!(second.ended().await.success(), "{}", second.output());
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
async fn a_second_dev_on_a_folder_is_refused_harmlessly() {
    let folder = Folder::new();
    let mut first = Program::dev(&folder);
    let api = first.serving(folder.database()).await;
    let cluster = api.cluster("kept").await;
    let postgres = folder.postgres();
    let mut second = Program::dev(&folder);
    assert!(!second.ended().await.success(), "{}", second.output());
    let said = second.output();
    let data = folder.data();
    for word in ["in use by another", data.to_str().unwrap(), "--data-dir"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
    assert!(!said.contains("Starting"), "{said}");
    assert_eq!(folder.postgres(), postgres);
    assert_eq!(api.get(&cluster).await.status, 200);
    // The log of the first one is still the first one's.
    first.signal(Signal::INT);
    assert!(first.ended().await.success(), "{}", first.output());
    let log = std::fs::read_to_string(data.join("log")).unwrap();
    assert!(log.contains("ready to accept connections"), "{log}");
}

#[tokio::test]
async fn a_taken_port_is_named_and_postgres_is_stopped() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut program = Program::dev_with(&folder, &["--server-port", &port], &[]);
    assert!(!program.ended().await.success());
    let said = program.output();
    assert!(
        said.contains(&port) && said.contains("--server-port"),
        "{said}"
    );
    assert!(!said.contains("Starting"), "{said}");
    let left = folder.data().join("data/postmaster.pid");
    until("PostgreSQL is gone", async || !left.exists()).await;
}

#[tokio::test]
async fn a_requested_folder_that_postgres_cannot_enter_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: not root");
        return;
    }
    let folder = Folder::new();
    let closed = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(folder.path(), closed).unwrap();
    let mut program = Program::dev(&folder);
    assert_eq!(
        program.ended().await.code(),
        Some(2),
        "{}",
        program.output()
    );
    let said = program.output();
    let data = folder.data();
    for word in ["does not run as root", "--data-dir", data.to_str().unwrap()] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
    assert!(!data.exists());
}

#[tokio::test]
async fn a_folder_with_files_of_others_is_refused_and_not_touched() {
    let folder = Folder::new();
    let data = folder.data();
    std::fs::create_dir_all(data.join("data")).unwrap();
    for file in ["data/mine", "log"] {
        std::fs::write(data.join(file), "precious").unwrap();
    }
    let before = std::fs::metadata(&data).unwrap();
    let mut program = Program::dev(&folder);
    assert!(!program.ended().await.success());
    let said = program.output();
    assert!(
        said.contains("holds other files") && said.contains("--data-dir"),
        "{said}"
    );
    for file in ["data/mine", "log"] {
        assert_eq!(
            std::fs::read_to_string(data.join(file)).unwrap(),
            "precious"
        );
    }
    let after = std::fs::metadata(&data).unwrap();
    assert_eq!(before.mode(), after.mode());
    assert_eq!(before.uid(), after.uid());
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 2);
}

#[tokio::test]
async fn a_data_folder_that_was_never_finished_is_made_anew() {
    let folder = Folder::new();
    let data = folder.data();
    std::fs::create_dir_all(data.join("data.new/base")).unwrap();
    std::fs::write(data.join("data.new/PG_VERSION"), "15\n").unwrap();
    std::fs::write(data.join("hyperfleet-postgres"), "").unwrap();
    let mut program = Program::dev(&folder);
    let api = program.serving(folder.database()).await;
    api.cluster("made").await;
    assert!(!data.join("data.new").exists());
    program.signal(Signal::INT);
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test]
async fn a_dev_whose_postgres_dies_ends_and_says_so() {
    let folder = Folder::new();
    // Without the demo adapter, whose connections would fill the end of PostgreSQL's log.
    let flags = ["--server-port", "0", "--no-demo-adapter"];
    let mut program = Program::dev_with(&folder, &flags, &[]);
    let cluster = program
        .serving(folder.database())
        .await
        .cluster("kept")
        .await;
    folder.postgres().kill();
    assert!(!program.ended().await.success(), "{}", program.output());
    let said = program.output();
    assert!(said.contains("the private PostgreSQL has ended"), "{said}");
    // The end of its log on lines of their own, and where the rest of it is.
    let (_, shown) = said.split_once("The end of its log").unwrap();
    let lines = shown
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    let lines: Vec<_> = lines.collect();
    assert!((1..=10).contains(&lines.len()), "{said}");
    assert!(
        lines
            .iter()
            .any(|l| l.contains("ready to accept connections")),
        "{said}"
    );
    let log = folder.data().join("log").display().to_string();
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("ended by an error") && last.contains(&log),
        "{said}"
    );
    assert!(!last.contains("ready to accept connections"), "{said}");
    let mut again = Program::dev(&folder);
    let api = again.serving(folder.database()).await;
    assert_eq!(api.get(&cluster).await.status, 200);
}

#[tokio::test]
async fn a_dev_that_is_to_authenticate_asks_for_an_issuer() {
    let folder = Folder::new();
    let mut program = Program::dev_with(&folder, &["--server-jwt-enabled"], &[]);
    assert!(!program.ended().await.success());
    let said = program.output();
    assert!(
        said.contains("server.jwt.configs requires at least one issuer"),
        "{said}"
    );
    assert!(!folder.data().exists());
}

#[tokio::test]
async fn a_dev_uses_the_database_that_any_setting_names() {
    let database = TestDatabase::create_empty().await;
    let options = database.options();
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let (port, url) = (options.get_port().to_string(), database.url());
    let name = options.get_database().unwrap();
    let flags = [
        ["--db-host", &host],
        ["--db-port", &port],
        ["--db-username", "postgres"],
        ["--db-name", name],
    ];
    for (count, (flags, variables, named)) in (1..).zip([
        (
            flags.as_flattened(),
            &[][..],
            "database.host, from --db-host",
        ),
        (
            &[],
            &[("DATABASE_URL", url.as_str())],
            "database.url, from DATABASE_URL",
        ),
    ]) {
        let folder = Folder::new();
        let flags = [&["--server-port", "0"], flags].concat();
        let mut program = Program::dev_with(&folder, &flags, variables);
        let api = program.serving(TestDatabase::at(options.clone())).await;
        api.cluster(&format!("cluster-{count}")).await;
        let stored = api.count("SELECT count(*) FROM resources").await;
        assert_eq!(stored, count, "{named}");
        assert!(!folder.data().exists(), "{named}");
        let said = program.output();
        let note = "--data-dir ignored: the settings name a database";
        let off = "demo adapter     off (the settings name a database)";
        for part in ["the PostgreSQL that was named", note, named, off] {
            assert!(said.contains(part), "no {part} in: {said}");
        }
    }
}

#[tokio::test]
async fn a_dev_whose_output_nobody_reads_serves_all_the_same() {
    let folder = Folder::new();
    let data = folder.data();
    let script = format!(
        "{} dev --data-dir {} --server-port 0 2>&1 >/dev/full",
        env!("CARGO_BIN_EXE_hyperfleet-api"),
        data.display()
    );
    let mut child = std::process::Command::new("sh")
        .args(["-c", &format!("exec {script}")])
        .current_dir("/")
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ready = data.join("data/postmaster.pid");
    until("PostgreSQL runs", async || ready.exists()).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(child.try_wait().unwrap(), None);
    let pid = i32::try_from(child.id()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
}

/// The status of a resource's condition, with its reason.
fn condition(resource: &Value, name: &str) -> (String, String) {
    let conditions = resource["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|one| one["type"] == name));
    let text = |member: &str| {
        let text = found.and_then(|found| found[member].as_str());
        text.unwrap_or_default().to_owned()
    };
    (text("status"), text("reason"))
}

#[tokio::test]
async fn the_demo_adapter_reconciles_fails_and_finalizes() {
    let folder = Folder::new();
    let mut program = Program::dev(&folder);
    let api = program.serving(folder.database()).await;
    let body = |name: &str, demo: Value| json!({"kind": "Cluster", "name": name, "spec": {"region": "eu", "demo": demo}});
    let mut made = Vec::new();
    for (name, demo) in [
        ("works", json!({})),
        ("fails", json!({"fail": "dns"})),
        ("manual", json!({"manual": true})),
    ] {
        let created = api.post("/clusters", body(name, demo)).await;
        made.push(format!(
            "/clusters/{}",
            created.body["id"].as_str().unwrap()
        ));
    }
    let [works, fails, manual] = &made[..] else {
        unreachable!()
    };
    until("the cluster is reconciled", async || {
        condition(&api.get(works).await.body, "Reconciled").0 == "True"
    })
    .await;
    until("the other says why it is not", async || {
        let explained = api.get(&format!("{fails}/explain")).await.body;
        let adapters = explained["adapters"].as_array().unwrap().iter();
        let failing = adapters.filter(|adapter| adapter["state"] == "failing");
        let failing: Vec<_> = failing
            .map(|adapter| (&adapter["adapter"], &adapter["condition"]["reason"]))
            .collect();
        failing == [(&json!("dns"), &json!("DemoFailure"))]
    })
    .await;
    let repaired = json!({"spec": {"region": "eu"}});
    assert_eq!(api.patch(fails, repaired).await.status, 200);
    until("the repaired cluster is reconciled", async || {
        condition(&api.get(fails).await.body, "Reconciled").0 == "True"
    })
    .await;
    let (_, reason) = condition(&api.get(manual).await.body, "Reconciled");
    assert_eq!(reason, "ReconciledMissingAdapters");
    assert_eq!(api.delete(works).await.status, 202);
    until("the deleted cluster is gone", async || {
        api.get(works).await.status == 404
    })
    .await;
    program.signal(Signal::INT);
    assert!(program.ended().await.success(), "{}", program.output());
    let said = program.output();
    // Statements are slow on a busy machine.
    let mut warnings = said.lines().filter(|line| line.contains(" WARN "));
    assert!(
        warnings.all(|line| line.contains("slow statement")),
        "{said}"
    );
}

#[tokio::test]
async fn dev_reports_nothing_where_it_may_not() {
    let folder = Folder::new();
    for (flag, why) in [
        ("--no-demo-adapter", "off (--no-demo-adapter)"),
        (
            "--server-jwt-enabled=false",
            "plays dns, hypershift, pullsecret, validation",
        ),
    ] {
        let mut program = Program::dev_with(&folder, &["--server-port", "0", flag], &[]);
        program.serving(folder.database()).await;
        let said = program.output();
        assert!(said.contains(&format!("demo adapter     {why}")), "{said}");
        program.signal(Signal::INT);
        assert!(program.ended().await.success(), "{}", program.output());
    }
}

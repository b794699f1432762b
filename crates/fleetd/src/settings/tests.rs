use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::settings::reference;
use hyperfleet_fleet::agent::Leave;
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::{Changed, Format, Level, REDACTED, as_table};

/// The settings of a file and variables.
fn loaded(file: &str, variables: &[(&str, &str)]) -> anyhow::Result<Loaded> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.conf");
    std::fs::write(&path, file).unwrap();
    let variables = variables.iter().map(|(n, v)| (n.into(), v.into()));
    from_sources(Some(&path), variables)
}

fn sound(file: &str, variables: &[(&str, &str)]) -> Loaded {
    loaded(file, variables).unwrap()
}

fn faults(file: &str, variables: &[(&str, &str)]) -> String {
    format!("{:#}", loaded(file, variables).unwrap_err())
}

#[test]
fn every_key_is_there_once_and_its_default_is_good() {
    let names: BTreeSet<_> = TABLE.settings.iter().map(|s| s.key).collect();
    assert_eq!(names.len(), TABLE.settings.len());
    let settings = sound("", &[]).settings;
    assert_eq!(settings.engine.lease_seconds(), 10);
    assert_eq!(settings.listen.socket_mode, 0o660);
    assert_eq!(settings.logging.level, Level::Info);
    // One set of defaults for both programs.
    assert_eq!(settings.etcd, Etcd::default());
    assert_eq!(settings.page_size, 100);
}

/// The older fleetd's example file with all lines active, and further keys from its manual.
const OLDER: &str = r#"
# This config file is INI-formatted
verbosity=1
etcd_servers=["http://127.0.0.1:2379", "http://127.0.0.1:4001"]
etcd_request_timeout=1.5
etcd_username=guest
etcd_password="p4ss#w0rd"
etcd_key_prefix = /_coreos.com/fleet/
public_ip="10.0.0.7"
metadata="region=us-west,az=us-west-1"
agent_ttl="45s"
engine_reconcile_interval=2
units_directory='/run/fleet/units/'
token_limit=50
disable_engine=false
disable_watches=true
enable_grpc=true
verify_units=false
authorized_keys_file=/root/.ssh/authorized_keys
"#;

#[test]
fn a_file_of_the_older_fleetd_works() {
    let loaded = sound(OLDER, &[]);
    let Settings {
        etcd,
        etcd_password,
        engine,
        agent,
        page_size,
        logging,
        ..
    } = &loaded.settings;
    assert_eq!(
        etcd.endpoints,
        ["http://127.0.0.1:2379", "http://127.0.0.1:4001"]
    );
    assert_eq!(etcd.request_timeout, Duration::from_millis(1500));
    assert_eq!(etcd.username, "guest");
    assert_eq!(etcd_password.expose(), "p4ss#w0rd");
    assert_eq!(etcd.key_prefix, "/_coreos.com/fleet/");
    assert_eq!(engine.interval, Duration::from_secs(2));
    assert_eq!(engine.machine_lease, Duration::from_secs(45));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let pairs = [pair("az", "us-west-1"), pair("region", "us-west")];
    assert_eq!(agent.pairs(), pairs.into());
    assert_eq!(agent.public_ip, "10.0.0.7");
    assert_eq!(agent.units_directory, PathBuf::from("/run/fleet/units/"));
    assert!(!agent.is_disabled && agent.leave() == Leave::Running);
    assert_eq!((*page_size, logging.level), (50, Level::Debug));
    let notes = loaded.notes.join("\n");
    for note in [
        "disable_watches (from ",
        "enable_grpc (from ",
        "verify_units (from ",
        "authorized_keys_file (from ",
    ] {
        assert!(notes.contains(note), "no {note:?} in: {notes}");
    }
    assert_eq!(loaded.notes.len(), 4, "{notes}");
}

#[test]
fn a_page_that_is_larger_than_may_be_is_as_large_as_may_be() {
    let loaded = sound("token_limit=1000\n", &[]);
    assert_eq!(loaded.settings.page_size, PAGE_SIZE_MAX);
    let notes = loaded.notes.join("\n");
    assert!(
        notes.contains("token_limit: 1000") && notes.contains("using 256"),
        "{notes}"
    );
    assert!(sound("token_limit=256\n", &[]).notes.is_empty());
}

#[test]
fn users_in_urls_are_not_shown() {
    let loaded = sound("etcd_servers=http://u:secretpw@a:2379\n", &[]);
    let shown = loaded.effective().into_iter().map(|e| e.value);
    assert!(!shown.collect::<String>().contains("secretpw"));
    assert!(!loaded.summary().contains("secretpw"));
}

#[test]
fn variables_count_before_the_file_and_empty_ones_do_not() {
    let loaded = sound(
        "token_limit=50\nlisten=tcp:127.0.0.1:1\nlog_level=error\nverbosity=1\n",
        &[
            ("FLEET_TOKEN_LIMIT", "60"),
            ("FLEET_LISTEN", ""),
            ("FLEET_LOG_FORMAT", "json"),
            ("FLEETCTL_ENDPOINT", "http://x"),
            ("FLEET_API_SERVICE_HOST", "10.0.0.1"),
            ("FLEET_TOKEN_LIMITS", "1"),
        ],
    );
    assert_eq!(loaded.settings.page_size, 60);
    assert_eq!(loaded.settings.logging.level, Level::Error);
    assert_eq!(loaded.settings.logging.format, Format::Json);
    let origin = |key: &str| {
        let effective = loaded.effective();
        let found = effective.iter().find(|e| e.key == key).unwrap();
        (found.value.clone(), found.origin.clone())
    };
    assert_eq!(
        origin("token_limit"),
        ("60".into(), "FLEET_TOKEN_LIMIT".into())
    );
    assert_eq!(origin("listen").0, "tcp:127.0.0.1:1");
    assert!(origin("listen").1.ends_with("fleet.conf:2"));
    assert_eq!(origin("idle_timeout"), ("75".into(), "default".into()));
    let slip = "FLEET_TOKEN_LIMITS is not a setting; did you mean FLEET_TOKEN_LIMIT?";
    assert_eq!(loaded.notes, [slip]);
}

#[test]
fn all_faults_are_reported_at_once_each_with_its_place() {
    let file = "
etcd_server=http://x
what is this
token_limit=65536
listen=unix:relative, tcp:127.0.0.1:1
metadata=a=b,c
disable_engine=maybe
";
    let said = faults(
        file,
        &[
            ("FLEET_AGENT_TTL", "soon"),
            ("FLEET_LISTEN_SOCKET_MODE", "9"),
        ],
    );
    for fault in [
        "etcd_server (from ",
        ":2): there is no such setting; did you mean etcd_servers?",
        ":3: it is no `key = value`",
        "token_limit (from ",
        "\"65536\" is not between 1 and 65535",
        "listen (from ",
        "give the whole path of the socket",
        "metadata (from ",
        "\"c\" is no pair",
        "disable_engine (from ",
        "agent_ttl (from FLEET_AGENT_TTL): \"soon\"",
        "listen_socket_mode (from FLEET_LISTEN_SOCKET_MODE): \"9\"",
    ] {
        assert!(said.contains(fault), "no {fault:?} in: {said}");
    }
    assert!(!said.contains("what is this"), "{said}");
}

#[test]
fn contradictions_are_reported_at_once_with_their_places() {
    let file = "listen_client_ca_file=/ca.pem\netcd_password=hush\netcd_password_file=/hushed\n";
    let said = faults(file, &[]);
    for fault in [
        "fleet.conf:1) needs listen_cert_file",
        "fleet.conf:2) and etcd_password_file are both set",
    ] {
        assert!(said.contains(fault), "no {fault:?} in: {said}");
    }
    assert!(!said.contains("hush"), "{said}");
}

#[test]
fn unreadable_files_and_invalid_texts_are_reported() {
    let value = OsString::from_vec(b"hush\xff".to_vec());
    let variables = [("FLEET_ETCD_PASSWORD".into(), value)];
    let loaded = from_sources(Some(Path::new("/nowhere/fleet.conf")), variables);
    let said = format!("{:#}", loaded.unwrap_err());
    assert!(said.contains("cannot read /nowhere/fleet.conf"), "{said}");
    let fault = "etcd_password (from FLEET_ETCD_PASSWORD): must be a text in UTF-8";
    assert!(said.contains(fault) && !said.contains("hush"), "{said}");
}

#[test]
fn sections_and_repetitions_are_reported_and_count_as_before() {
    let loaded = sound(
        "token_limit=1\ntoken_limit=2\n[agent]\ntoken_limit=3\nnonsense=4\n",
        &[],
    );
    assert_eq!(loaded.settings.page_size, 2);
    let notes = loaded.notes.join("\n");
    assert!(notes.contains(":2: token_limit is repeated"), "{notes}");
    assert!(
        notes.contains(":3: settings in a section are ignored, here [agent]"),
        "{notes}"
    );
}

#[test]
fn secrets_are_shown_nowhere() {
    let loaded = sound("etcd_username=shown\netcd_password=hush\n", &[]);
    let table = as_table(&loaded.effective());
    let shown = format!("{table}{}{:?}", loaded.summary(), loaded.settings);
    assert!(!shown.contains("hush"), "{shown}");
    assert!(
        shown.contains("shown") && shown.contains(REDACTED),
        "{shown}"
    );
}

#[test]
fn a_reload_knows_what_it_can_take_and_what_needs_a_start() {
    let before = sound("token_limit=1\nverbosity=0\n", &[]);
    let after = sound(
        "log_level=debug\nmetadata=a=b\n",
        &[("FLEET_LISTEN", "tcp:127.0.0.1:1")],
    );
    let changed = after.changed_since(&before);
    assert_eq!(changed.at_once, ["metadata", "log_level"]);
    assert_eq!(changed.at_a_start, ["token_limit", "listen"]);
    assert_eq!(after.changed_since(&after), Changed::default());
}

/// `make config-reference` renews it.
#[test]
fn the_table_of_the_documentation_is_that_of_the_code() {
    let document = std::fs::read_to_string("../../docs/reference/fleetd-settings.md").unwrap();
    let table = document
        .split_once("<!-- settings -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- /settings -->"))
        .map(|(table, _)| table);
    assert_eq!(
        table,
        Some(reference().as_str()),
        "run `make config-reference`"
    );
}

#[test]
fn the_example_is_a_good_file() {
    let example = std::fs::read_to_string("../../examples/fleet.conf").unwrap();
    assert!(sound(&example, &[]).notes.is_empty());
    // Its comments are settings, too: each is valid and, where it says so, the default.
    let given: Vec<_> = example
        .lines()
        .filter_map(|l| l.strip_prefix("# "))
        .collect();
    let given = given.into_iter().filter(|line| line.contains(" = "));
    let all = given.fold(String::new(), |all, line| all + line + "\n");
    let loaded = sound(&all, &[]);
    let effective = loaded.effective();
    let given = effective.iter().filter(|e| e.origin != "default");
    assert!(
        given.count() > 10 && loaded.notes.is_empty(),
        "{:?}",
        loaded.notes
    );
}

//! `hyperfleet-api healthcheck` beside the program that it asks.

use std::net::TcpListener;

use super::program::Program;
use super::tls::Mounted;
use crate::support::TestDatabase;

/// Runs it with the settings of an instance in its environment; gives the exit code and what it says.
async fn healthcheck(variables: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String) {
    let args = [&["healthcheck"], args].concat();
    let mut program = Program::start_with(&args, variables);
    (program.ended().await.code(), program.output())
}

fn port_of(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

#[tokio::test]
async fn it_asks_the_instance_that_has_the_same_settings() {
    let database = TestDatabase::create().await;
    let settings = "{health: {host: 0.0.0.0, port: 0, shutdown_delay: 0s}, metrics: {port: 0}}";
    let mut program = Program::serve_with(&database, settings, &[]);
    let address = program.address("health").await;
    let port = port_of(&address);
    let _api = program.serving(database).await;
    let variables = [
        ("HYPERFLEET_HEALTH_HOST", "0.0.0.0"),
        ("HYPERFLEET_HEALTH_PORT", port),
        // A proxy is not asked, and other settings do not matter.
        ("http_proxy", "http://127.0.0.1:1"),
        ("HYPERFLEET_SERVER_PORT", "many"),
    ];
    for args in [&[][..], &["--ready"]] {
        let (code, said) = healthcheck(&variables, args).await;
        assert_eq!((code, said.as_str()), (Some(0), "{\"status\":\"ok\"}\n"));
    }
    // By flags, as `serve` may have them.
    let flags = ["--health-host=127.0.0.1", "--health-port", port];
    assert_eq!(healthcheck(&[], &flags).await.0, Some(0));
}

#[tokio::test]
async fn an_instance_that_is_not_ready_is_alive() {
    let database = TestDatabase::create_empty().await;
    let settings = "{health: {port: 0, shutdown_delay: 0s}, metrics: {port: 0}}";
    let mut program = Program::serve_with(&database, settings, &[]);
    let address = program.address("health").await;
    let variables = [("HYPERFLEET_HEALTH_PORT", port_of(&address))];
    program.until_output("the database lacks").await;
    assert_eq!(healthcheck(&variables, &[]).await.0, Some(0));
    let (code, said) = healthcheck(&variables, &["--ready"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("/readyz answers 503"), "{said}");
    assert!(said.contains("hyperfleet-api migrate"), "{said}");
}

#[tokio::test]
async fn a_health_listener_with_tls_is_asked_over_tls() {
    let database = TestDatabase::create().await;
    let mounted = Mounted::new();
    let mut program = Program::serve_with(&database, &mounted.settings(), &[]);
    let address = program.address("health").await;
    let port = port_of(&address);
    let variables = [
        ("HYPERFLEET_HEALTH_PORT", port),
        ("HYPERFLEET_HEALTH_TLS_ENABLED", "true"),
    ];
    let (code, said) = healthcheck(&variables, &[]).await;
    assert_eq!((code, said.as_str()), (Some(0), "{\"status\":\"ok\"}\n"));
}

#[tokio::test]
async fn no_answer_is_unhealthy_and_the_error_says_what_to_look_at() {
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let variables = [
        ("HYPERFLEET_HEALTH_HOST", "127.0.0.1"),
        ("HYPERFLEET_HEALTH_PORT", port.as_str()),
    ];
    let (code, said) = healthcheck(&variables, &["--timeout", "200ms"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("timed out"), "{said}");
    drop(silent);
    let (code, said) = healthcheck(&variables, &[]).await;
    assert_eq!(code, Some(1));
    for words in [
        &format!("no answer from http://127.0.0.1:{port}/healthz"),
        "refused",
        "health.port",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    let (code, said) = healthcheck(&[("HYPERFLEET_HEALTH_PORT", "0")], &[]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("health.port is 0"), "{said}");
    // Nor does it ask another port than the one that is set.
    let (_, said) = healthcheck(&[("HYPERFLEET_HEALTH_PORT", "70000")], &[]).await;
    assert!(
        said.contains("\"70000\" is not between 0 and 65535"),
        "{said}"
    );
}

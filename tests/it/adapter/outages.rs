//! The API goes away and comes back.

use std::time::Duration;

use hyperfleet_adapter::{Api, Runner, Token};
use rustix::process::Signal;

use super::{NAME, Noting, Running, quick, until_reconciled};
use crate::faults::program::Program;
use crate::support::TestDatabase;

#[tokio::test]
async fn an_adapter_waits_for_an_api_that_is_away_and_goes_on() {
    let database = TestDatabase::create().await;
    let kinds = format!("[{{kind: Cart, plural: carts, required_adapters: [{NAME}]}}]");
    let settings = format!(
        "{{health: {{port: 0, shutdown_delay: 0s}}, metrics: {{port: 0}}, entities: {kinds}}}"
    );
    let mut program = Program::serve_with(&database, &settings, &[]);
    let api = program.serving(TestDatabase::at(database.options())).await;
    let address = api.base.trim_start_matches("http://").to_owned();
    let port = address.split([':', '/']).nth(1).unwrap();
    let adapter = Noting::content();
    let client = Api::new(&api.base, Token::None).unwrap();
    program.signal(Signal::KILL);
    program.ended().await;
    let running = Running::start(Runner::new(client, quick(&["carts"]), adapter.clone()));
    for name in ["first", "second"] {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut program = Program::serve_with(&database, &settings, &["--server-port", port]);
        let api = program.serving(TestDatabase::at(database.options())).await;
        let cart = api.make("/carts", "Cart", name).await;
        until_reconciled(&api, &cart).await;
        program.signal(Signal::KILL);
        program.ended().await;
    }
    running.stop().await;
}

#[test]
fn what_is_no_url_of_an_api_is_refused() {
    for base in ["", "localhost:8000", "ftp://example.com", "http://"] {
        assert!(Api::new(base, Token::None).is_err(), "{base}");
    }
}

//! An adapter to start from: copy this file, and put your work into `reconcile`.
//!
//! ```sh
//! cargo run -p hyperfleet-adapter --example starter -- clusters nodepools   # the kinds that it works on, by their plurals
//! ```
//!
//! | variable | is |
//! | --- | --- |
//! | `API` | URL of the service (`http://127.0.0.1:8000`) |
//! | `NAME` | the adapter's name, as in `required_adapters` (`starter`) |
//! | `TOKEN_FILE` | file with a token, if the service asks for one; it is read again before it expires |
//! | `LEASE` | lease of the API, for which copies of the adapter compete: its holder works (`NAME`); `none`: each copy works |
//! | `METRICS` | address of the metrics for Prometheus, such as `127.0.0.1:9100`; unset: none |
//!
//! A project of its own needs in `Cargo.toml`: `hyperfleet-adapter` from this repository (`git = …` or `path = …`), `anyhow`,
//! `metrics-exporter-prometheus`, `tracing-subscriber`, and `tokio` with the features `macros`, `rt-multi-thread` and `signal`.

use std::env;
use std::net::SocketAddr;
use std::time::Duration;

use hyperfleet_adapter::{
    Adapter, Api, Election, Finding, Kind, ReconcileOutcome, Report, Runner, Settings, Token, Work,
};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::signal::unix::{SignalKind, signal};

const WORK_TIME: Duration = Duration::from_secs(2);

struct Starter {
    name: String,
    api: Api,
}

impl Adapter for Starter {
    /// Creates nothing. An error is reported as `Available=False` and `Health=False`, and retried. This one fails if
    /// `spec.demo.fail` is true.
    async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
        let resource = &work.resource;
        let stored = self.api.stored_report(&self.name, resource).await?;
        let has_begun = stored.is_some_and(|stored| stored.generation == resource.generation);
        if has_begun && resource.spec()["demo"]["fail"] == true {
            anyhow::bail!("spec.demo.fail is true");
        }
        let report = match (resource.is_deleted(), has_begun) {
            (true, false) => Report::finalizing("Removing", "cleaning up"),
            (true, true) => Report::finalized("Removed", "nothing is left"),
            (false, false) => Report::new(Finding::no("Working", "about to create everything")),
            (false, true) => Report::new(Finding::yes("Done", "everything is there")),
        };
        Ok(if has_begun {
            ReconcileOutcome::reported(report)
        } else {
            ReconcileOutcome::again_after(report, WORK_TIME)
        })
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The library logs what it cannot do.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let kinds: Vec<_> = env::args().skip(1).map(Kind::new).collect();
    anyhow::ensure!(
        !kinds.is_empty(),
        "usage: API=http://127.0.0.1:8000 NAME=starter starter PLURAL…"
    );
    let given = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let variable = |name: &str, default: &str| given(name).unwrap_or_else(|| default.to_owned());
    let token = given("TOKEN_FILE").map_or(Token::None, |file| Token::File(file.into()));
    let api = Api::new(&variable("API", "http://127.0.0.1:8000"), token)?;
    let name = variable("NAME", "starter");
    let lease = variable("LEASE", &name);
    if let Some(address) = given("METRICS") {
        let address: SocketAddr = address.parse()?;
        let metrics = PrometheusBuilder::new().with_http_listener(address);
        metrics.install()?;
    }
    let settings = Settings::new(name.as_str(), kinds);
    let adapter = Starter {
        name,
        api: api.clone(),
    };
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let runner = match lease.as_str() {
        "none" => Runner::new(api, settings, adapter),
        _ => Runner::elected(api, settings, adapter, Election::new(lease)),
    };
    runner.run(stop).await;
    Ok(())
}

//! Runs the demo adapter: inside `dev`, and as a program of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyperfleet_adapter::{Api, Runner, Settings as RunnerSettings, Token};
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::http::Gate;
use hyperfleet_server_kit::program::Build;
use hyperfleet_server_kit::shutdown;
use hyperfleet_server_kit::signals::Signals;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::plan::kinds;
use super::{BUILD, loopback, telemetry};
use crate::config::{self, DemoAdapterArgs, Settings};
use crate::dev::demo::{self, DemoAdapter};
use hyperfleet_domain::EntityRegistry;

/// The program's name in its log.
const ADAPTER: Build = Build {
    component: "demo-adapter",
    ..BUILD
};
/// How long reports in progress may take at the end.
const GRACE: Duration = Duration::from_secs(1);

/// The demo adapter for some kinds: one runner for each required adapter.
pub(super) struct DemoAdapters {
    /// Plurals of the kinds that require an adapter, by its name.
    kinds: BTreeMap<String, Vec<String>>,
}

impl DemoAdapters {
    /// Stands in for every adapter that a kind requires, except one that runs anyway.
    pub(super) fn new(registry: &EntityRegistry, except: Option<&str>) -> Self {
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entity in registry.entities() {
            let adapters = entity.required_adapters.iter();
            for adapter in adapters.filter(|adapter| Some(adapter.as_str()) != except) {
                let plurals = kinds.entry(adapter.clone()).or_default();
                plurals.push(entity.plural.clone());
            }
        }
        Self { kinds }
    }

    /// Those that `dev` runs.
    ///
    /// # Errors
    /// Why it runs none.
    pub(super) fn of_dev(
        is_unwanted: bool,
        has_private_database: bool,
        settings: &Settings,
        registry: &EntityRegistry,
    ) -> Result<Self, &'static str> {
        let tenant = &settings.server.tenant;
        if is_unwanted {
            return Err("--no-demo-adapter");
        }
        // Its resources may be real, and have real adapters.
        if !has_private_database {
            return Err("the settings name a database");
        }
        if settings.server.jwt.enabled {
            return Err("callers need a token; see hyperfleet-api demo-adapter --help");
        }
        if settings.server.tls.enabled {
            return Err("the API is served over TLS; see hyperfleet-api demo-adapter --help");
        }
        if tenant.enabled && tenant.dimensions.iter().any(|d| d.required) {
            return Err("callers need a tenant");
        }
        let fleet_adapter = &settings.fleet.adapter;
        let is_running = fleet_adapter.enabled.then_some(fleet_adapter.name.as_str());
        let adapters = Self::new(registry, is_running);
        if adapters.kinds.is_empty() {
            return Err("no kind requires an adapter that is missing");
        }
        Ok(adapters)
    }

    /// The names of the adapters, sorted.
    pub(super) fn names(&self) -> Vec<&str> {
        self.kinds.keys().map(String::as_str).collect()
    }

    /// Works with the API of this process until it shuts down.
    pub(super) async fn run_beside(self, listener: SocketAddr, gate: Gate) {
        match Api::named(&loopback::url(listener), Token::None, demo::USER_AGENT) {
            Ok(api) => self.run(&api, demo::WORK_TIME, gate.stopped()).await,
            Err(error) => tracing::error!(%error, "demo adapter cannot run"),
        }
    }

    /// Works until `stop`.
    pub(super) async fn run(self, api: &Api, work_time: Duration, stop: impl Future<Output = ()>) {
        let is_stopped = watch::Sender::new(false);
        let mut runners = JoinSet::new();
        let played: Arc<BTreeSet<_>> = Arc::new(self.kinds.keys().cloned().collect());
        for (name, plurals) in self.kinds {
            let kinds = plurals.iter().map(|plural| demo::kind(plural)).collect();
            let settings = RunnerSettings {
                grace: GRACE,
                ..RunnerSettings::new(name.as_str(), kinds)
            };
            let adapter = DemoAdapter {
                name,
                played: Arc::clone(&played),
                api: api.clone(),
                work_time,
            };
            let mut stopped = is_stopped.subscribe();
            let stop = async move {
                // Fails only if the sender, which could stop it, is gone.
                let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
            };
            runners.spawn(Runner::new(api.clone(), settings, adapter).run(stop));
        }
        stop.await;
        is_stopped.send_replace(true);
        runners.join_all().await;
    }
}

/// Runs the demo adapter until a signal arrives.
pub(super) async fn run(args: &DemoAdapterArgs) -> anyhow::Result<()> {
    let loaded = config::load(&args.settings, &Settings::default())?;
    let adapters = DemoAdapters::new(&kinds(&loaded)?.registry, None);
    let token = args.token_file.clone().map_or(Token::None, Token::File);
    let api = Api::new(&args.api_url, token).context(Misuse)?;
    let telemetry = telemetry::start_of(&ADAPTER, &loaded.settings)?;
    let mut signals = Signals::catch()?;
    let (api_url, adapters_played) = (&args.api_url, adapters.names().join(", "));
    tracing::info!(
        api = api_url,
        adapters = adapters_played,
        "demo adapter started"
    );
    adapters.run(&api, args.work_time, signals.next()).await;
    tracing::info!("stopped");
    shutdown::send_spans(telemetry.traces).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_required_adapter_is_played_but_one_that_runs() {
        let registry = Settings::default().kinds().unwrap().registry;
        let all = DemoAdapters::new(&registry, None);
        assert_eq!(
            all.names(),
            ["dns", "hypershift", "pullsecret", "validation"]
        );
        assert_eq!(all.kinds["validation"], ["clusters", "nodepools"]);
        let others = DemoAdapters::new(&registry, Some("dns"));
        assert_eq!(others.names(), ["hypershift", "pullsecret", "validation"]);
    }
}

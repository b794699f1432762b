//! Checks the settings of the fleet adapter before anything is started.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::anyhow;
use hyperfleet_adapter::{Api, Settings as RunnerSettings, Token};
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::start::Prepared;
use hyperfleet_fleet_adapter::workloads::Workloads;
use hyperfleet_fleet_adapter::{OrphanSettings, Running, approval};
use hyperfleet_server_kit::errors::ErrorList;
use hyperfleet_server_kit::files;

use crate::config::{self, Settings};
use crate::startup::loopback;
use hyperfleet_domain::{EntityRegistry, Report};

/// The command that approves removals.
const APPROVE: &str = "hyperfleet-fleet-adapter approve-removals";
/// The machine's name on Linux.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// Longest token, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;
/// Longest time between two searches for units without a resource.
const ORPHAN_INTERVAL_MAX: Duration = Duration::from_secs(30);

/// The checked settings of a fleet adapter.
#[derive(Debug, Clone)]
pub(crate) struct AdapterPlan {
    settings: config::FleetAdapterSettings,
    instance: String,
    /// Path segments of the kinds that it reports on.
    plurals: Vec<String>,
    /// Prefix of its own keys in etcd.
    keys: String,
}

impl AdapterPlan {
    /// The adapter that `serve` runs, if the settings enable it. Workloads are always checked, so that `config check`
    /// also finds their errors for a standalone adapter.
    ///
    /// # Errors
    ///
    /// Every error, with its setting.
    pub(crate) fn embedded(
        settings: &Settings,
        kinds: Option<&EntityRegistry>,
    ) -> anyhow::Result<Option<Self>> {
        let adapter = &settings.fleet.adapter;
        if !adapter.enabled {
            let mut errors = ErrorList::default();
            check_workloads(adapter, kinds, &mut errors);
            errors.refuse()?;
            return Ok(None);
        }
        let mut errors = ErrorList::default();
        let mut error = |text: &str| errors.0.push(text.to_owned());
        if !settings.fleet.enabled {
            error(
                "fleet.adapter.enabled is true, but fleet.enabled is false: set fleet.enabled to true, or run only the adapter with `hyperfleet-api fleet-adapter run`",
            );
        }
        if adapter.api_url.is_empty() {
            if settings.server.tls.enabled {
                error(
                    "fleet.adapter.api_url is not set, but server.tls.enabled is true: set it to the URL with the name that the certificate is for",
                );
            }
            if settings.server.jwt.enabled && adapter.token_file.as_os_str().is_empty() {
                error(
                    "fleet.adapter.token_file is not set, but server.jwt.enabled is true: name a file with a token for the adapter",
                );
            }
        }
        Self::checked(settings, kinds, errors).map(Some)
    }

    /// The adapter without the API.
    ///
    /// # Errors
    ///
    /// Every error, with its setting.
    pub(super) fn standalone(
        settings: &Settings,
        kinds: Option<&EntityRegistry>,
    ) -> anyhow::Result<Self> {
        let mut errors = ErrorList::default();
        if settings.fleet.adapter.api_url.is_empty() {
            errors.0.push(
                "fleet.adapter.api_url is not set: set it to the URL of the API, such as http://127.0.0.1:8000".to_owned(),
            );
        }
        Self::checked(settings, kinds, errors)
    }

    fn checked(
        settings: &Settings,
        kinds: Option<&EntityRegistry>,
        mut errors: ErrorList,
    ) -> anyhow::Result<Self> {
        let adapter = &settings.fleet.adapter;
        check_workloads(adapter, kinds, &mut errors);
        check_name(&adapter.name, &mut errors);
        if !adapter.api_url.is_empty() {
            let api = Api::new(&adapter.api_url, Token::None);
            errors.part(api.map_err(|error| anyhow!("fleet.adapter.api_url: {error}")));
        }
        let token = &adapter.token_file;
        if !token.as_os_str().is_empty() {
            let read = files::read(token, TOKEN_BYTES_MAX);
            errors.part(read.map_err(|error| {
                anyhow!(
                    "fleet.adapter.token_file: cannot read {}: {error}",
                    token.display()
                )
            }));
        }
        let plurals = kinds.map_or_else(Vec::new, |kinds| plurals(adapter, kinds));
        if kinds.is_some() && plurals.is_empty() && errors.0.is_empty() {
            errors.0.push(format!(
                "fleet.adapter.workloads is empty, and no kind requires the adapter {:?}: it has nothing to do",
                adapter.name
            ));
        }
        errors.refuse()?;
        Ok(Self {
            instance: instance(&settings.server.hostname),
            plurals,
            keys: approval::keys(&settings.fleet.etcd.key_prefix, &adapter.name),
            settings: adapter.clone(),
        })
    }

    /// The adapter's name in reports.
    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    /// The URL of the API: the configured URL, or else the URL of a listener of this process.
    pub(super) fn api_url(&self, listener: Option<SocketAddr>) -> String {
        match listener {
            Some(listener) if self.settings.api_url.is_empty() => loopback::url(listener),
            _ => self.settings.api_url.clone(),
        }
    }

    /// The adapter to run, with the URL of the API. Work in progress may take `grace` at the end.
    ///
    /// # Errors
    ///
    /// An error that the plan was checked for.
    pub(super) fn running(
        &self,
        fleet: &Prepared,
        api_url: &str,
        grace: Duration,
    ) -> anyhow::Result<Running<EtcdKeys>> {
        let settings = &self.settings;
        let token = match &settings.token_file {
            file if file.as_os_str().is_empty() => Token::None,
            file => Token::File(file.clone()),
        };
        Ok(Running {
            fleet: fleet.fleet.clone(),
            store: fleet.keys.clone(),
            api: Api::new(api_url, token)?,
            workloads: Workloads::compile(&settings.name, &settings.workloads)
                .map_err(|errors| anyhow!(errors.join("\n")))?,
            adapter: hyperfleet_fleet_adapter::Settings {
                name: settings.name.clone(),
                instance: self.instance.clone(),
                keys: self.keys.clone(),
                removal_limit: settings.removal_limit,
                approve_command: APPROVE.to_owned(),
            },
            kinds: self.plurals.clone(),
            runner: RunnerSettings {
                workers: settings.workers,
                poll_interval: settings.poll_interval,
                sweep_interval: settings.sweep_interval,
                report_interval: settings.report_interval,
                grace,
                ..RunnerSettings::new(&settings.name, Vec::new())
            },
            orphans: OrphanSettings {
                grace: settings.orphan_grace,
                // An existing resource was seen since the last pass over all.
                unseen: settings.sweep_interval + settings.poll_interval,
                interval: settings.sweep_interval.min(ORPHAN_INTERVAL_MAX),
            },
            lease_seconds: u32::try_from(settings.lease_time.as_secs()).unwrap_or(u32::MAX),
        })
    }
}

/// Finds every error of the workloads, and kinds that do not exist.
fn check_workloads(
    adapter: &config::FleetAdapterSettings,
    kinds: Option<&EntityRegistry>,
    errors: &mut ErrorList,
) {
    if let Err(found) = Workloads::compile(&adapter.name, &adapter.workloads) {
        let named = found
            .into_iter()
            .map(|error| match error.strip_prefix("workloads[") {
                Some(rest) => format!("fleet.adapter.workloads[{rest}"),
                None => format!("fleet.adapter {error}"),
            });
        errors.0.extend(named);
    }
    let Some(kinds) = kinds else { return };
    for (position, workload) in adapter.workloads.iter().enumerate() {
        let kind = &workload.kind;
        if !kind.is_empty() && kinds.get(kind).is_none() {
            let known: Vec<_> = kinds.entities().iter().map(|e| e.kind.as_str()).collect();
            errors.0.push(format!(
                "fleet.adapter.workloads[{position}]: the kind {kind:?} is not configured: give one of {}, or add it to entities",
                known.join(", ")
            ));
        }
    }
}

/// The name is a part of keys and of units.
fn check_name(name: &str, errors: &mut ErrorList) {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let length = 1..=Report::ADAPTER_BYTES_MAX;
    if !length.contains(&name.len()) || !name.chars().all(is_good) {
        errors.0.push(format!(
            "fleet.adapter.name is {name:?}: give up to {} letters, digits, -, _ or .",
            Report::ADAPTER_BYTES_MAX
        ));
    }
}

/// The kinds that have workloads, their parents, whose changes workloads may see as `owner`, and those that require
/// the adapter.
fn plurals(adapter: &config::FleetAdapterSettings, kinds: &EntityRegistry) -> Vec<String> {
    let has_workload = |kind: &str| adapter.workloads.iter().any(|w| w.kind == kind);
    let worked_on = kinds.entities().iter().filter(|e| has_workload(&e.kind));
    let parents: Vec<_> = worked_on.filter_map(|e| e.parent.as_ref()).collect();
    let reported = kinds.entities().iter().filter(|e| {
        has_workload(&e.kind)
            || parents.contains(&&e.kind)
            || e.required_adapters.contains(&adapter.name)
    });
    reported.map(|entity| entity.plural.clone()).collect()
}

/// Name of this replica: the name of the instance, or else of the machine.
fn instance(hostname: &str) -> String {
    if !hostname.is_empty() {
        return hostname.to_owned();
    }
    let name = fs::read_to_string(HOSTNAME).unwrap_or_default();
    match name.trim() {
        "" => format!("process-{}", std::process::id()),
        name => name.to_owned(),
    }
}

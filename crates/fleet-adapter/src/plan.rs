//! Checks the settings of the fleet adapter before anything is started.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use hyperfleet_adapter::{Api, Token};
use hyperfleet_domain::{EntityRegistry, Report};
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::start::Prepared;
use hyperfleet_server_kit::errors::ErrorList;
use hyperfleet_server_kit::files;

use crate::approval;
use crate::running::Running;
use crate::settings::Settings;
use crate::workloads::Workloads;

/// The machine's name on Linux.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// Longest token, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Settings of the program that the adapter depends on.
#[derive(Debug, Clone, Copy)]
pub struct ProgramSettings<'a> {
    /// The kinds of resources; `None` if they are invalid, which is reported elsewhere.
    pub kinds: Option<&'a EntityRegistry>,
    /// Name of this instance; empty for the name of the machine.
    pub hostname: &'a str,
    /// Prefix of fleet's keys in etcd.
    pub key_prefix: &'a str,
}

/// The API in the process of the adapter.
#[derive(Debug, Clone, Copy)]
pub struct OwnApi {
    /// Whether it serves fleet.
    pub has_fleet: bool,
    pub has_tls: bool,
    pub needs_token: bool,
}

/// The checked settings of a fleet adapter.
#[derive(Debug, Clone)]
pub struct AdapterPlan {
    settings: Settings,
    workloads: Arc<Workloads>,
    instance: String,
    /// Path segments of the kinds that it reports on.
    plurals: Vec<String>,
    /// Prefix of its own keys in etcd.
    keys: String,
}

impl AdapterPlan {
    /// The adapter beside the API, if the settings enable it. Workloads are always checked, so that `config check`
    /// also finds their errors for a standalone adapter.
    ///
    /// # Errors
    ///
    /// Every error, with its setting.
    pub fn embedded(
        settings: &Settings,
        program: ProgramSettings<'_>,
        api: OwnApi,
    ) -> anyhow::Result<Option<Self>> {
        let mut errors = ErrorList::default();
        if !settings.enabled {
            workloads(settings, program.kinds, &mut errors);
            errors.refuse()?;
            return Ok(None);
        }
        let mut error = |text: &str| errors.0.push(text.to_owned());
        if !api.has_fleet {
            error(
                "fleet.adapter.enabled is true, but fleet.enabled is false: set fleet.enabled to true, or run only the adapter with `hyperfleet-api fleet-adapter run`",
            );
        }
        if settings.api_url.is_empty() {
            if api.has_tls {
                error(
                    "fleet.adapter.api_url is not set, but server.tls.enabled is true: set it to the URL with the name that the certificate is for",
                );
            }
            if api.needs_token && settings.token_file.as_os_str().is_empty() {
                error(
                    "fleet.adapter.token_file is not set, but server.jwt.enabled is true: name a file with a token for the adapter",
                );
            }
        }
        Self::checked(settings, program, errors).map(Some)
    }

    /// The adapter without the API.
    ///
    /// # Errors
    ///
    /// Every error, with its setting.
    pub fn standalone(settings: &Settings, program: ProgramSettings<'_>) -> anyhow::Result<Self> {
        let mut errors = ErrorList::default();
        if settings.api_url.is_empty() {
            errors.0.push(
                "fleet.adapter.api_url is not set: set it to the URL of the API, such as http://127.0.0.1:8000".to_owned(),
            );
        }
        Self::checked(settings, program, errors)
    }

    fn checked(
        settings: &Settings,
        program: ProgramSettings<'_>,
        mut errors: ErrorList,
    ) -> anyhow::Result<Self> {
        let workloads = workloads(settings, program.kinds, &mut errors);
        check_name(&settings.name, &mut errors);
        if !settings.api_url.is_empty() {
            let api = Api::new(&settings.api_url, Token::None);
            errors.part(api.map_err(|error| anyhow!("fleet.adapter.api_url: {error}")));
        }
        if let Some(token) = token_file(settings) {
            let read = files::read(token, TOKEN_BYTES_MAX);
            errors.part(read.map_err(|error| {
                anyhow!(
                    "fleet.adapter.token_file: cannot read {}: {error}",
                    token.display()
                )
            }));
        }
        let kinds = program.kinds;
        let plurals = kinds.map_or_else(Vec::new, |kinds| plurals(settings, kinds));
        if kinds.is_some() && plurals.is_empty() && errors.0.is_empty() {
            errors.0.push(format!(
                "fleet.adapter.workloads is empty, and no kind requires the adapter {:?}: it has nothing to do",
                settings.name
            ));
        }
        errors.refuse()?;
        Ok(Self {
            workloads: Arc::new(workloads.context("every missing part has an error")?),
            instance: instance(program.hostname),
            plurals,
            keys: approval::keys(program.key_prefix, &settings.name),
            settings: settings.clone(),
        })
    }

    /// The URL of the API: the configured URL, or else that of the API in this process.
    pub(crate) fn api_url(&self, own_url: Option<String>) -> String {
        let configured = &self.settings.api_url;
        own_url
            .filter(|_| configured.is_empty())
            .unwrap_or_else(|| configured.clone())
    }

    /// The adapter to run. Work in progress may take `grace` at the end.
    pub(crate) fn running(
        self,
        fleet: &Prepared,
        api_url: &str,
        grace: Duration,
    ) -> anyhow::Result<Running<EtcdKeys>> {
        let token = token_file(&self.settings).map_or(Token::None, |file| Token::File(file.into()));
        Ok(Running {
            fleet: fleet.fleet.clone(),
            store: fleet.keys.clone(),
            api: Api::new(api_url, token)?,
            workloads: self.workloads,
            settings: self.settings,
            instance: self.instance,
            keys: self.keys,
            kinds: self.plurals,
            grace,
        })
    }
}

fn token_file(settings: &Settings) -> Option<&Path> {
    let file = settings.token_file.as_path();
    Some(file).filter(|file| !file.as_os_str().is_empty())
}

/// Compiles the workloads. Finds every error of theirs, and kinds that do not exist.
fn workloads(
    settings: &Settings,
    kinds: Option<&EntityRegistry>,
    errors: &mut ErrorList,
) -> Option<Workloads> {
    let compiled = errors.part(Workloads::compile(&settings.name, &settings.workloads));
    let Some(kinds) = kinds else { return compiled };
    for (position, workload) in settings.workloads.iter().enumerate() {
        let kind = &workload.kind;
        if !kind.is_empty() && kinds.get(kind).is_none() {
            let known: Vec<_> = kinds.entities().iter().map(|e| e.kind.as_str()).collect();
            errors.0.push(format!(
                "fleet.adapter.workloads[{position}]: the kind {kind:?} is not configured: give one of {}, or add it to entities",
                known.join(", ")
            ));
        }
    }
    compiled
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
fn plurals(settings: &Settings, kinds: &EntityRegistry) -> Vec<String> {
    let has_workload = |kind: &str| settings.workloads.iter().any(|w| w.kind == kind);
    let worked_on = kinds.entities().iter().filter(|e| has_workload(&e.kind));
    let parents: Vec<_> = worked_on.filter_map(|e| e.parent.as_ref()).collect();
    let reported = kinds.entities().iter().filter(|e| {
        has_workload(&e.kind)
            || parents.contains(&&e.kind)
            || e.required_adapters.contains(&settings.name)
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

#[cfg(test)]
#[path = "tests/plan.rs"]
pub(crate) mod tests;

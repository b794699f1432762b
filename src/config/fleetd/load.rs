//! From the file and the environment to one value: what neither says is the default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Settings;
use super::ini;
use super::keys::{KEYS, Key, PAGE_SIZE_MAX, Status, find};
use crate::config::fault::{self, Fault};
use crate::config::layers::likeliest;
use crate::config::{Effective, Origin, REDACTED};
use crate::kit::files;

/// The file that is read where none is named, if it is there.
const FILE: &str = "/etc/fleet/fleet.conf";
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// What says what a service is called in traces: a standard of OpenTelemetry's.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Settings, with where each of them comes from, and what is wrong with them.
#[derive(Clone)]
pub struct Loaded {
    /// The settings. What has a fault stands at its default.
    pub settings: Settings,
    /// What is odd, but stops nothing; to be logged.
    pub notes: Vec<String>,
    /// What was said, by key, secrets included.
    given: BTreeMap<&'static str, (String, Origin)>,
    faults: Vec<Fault>,
}

impl Loaded {
    /// Reads the file, the one that is named or else the usual one if it is there, and the environment, which counts
    /// before it. What is wrong is kept for [`Loaded::refuse`].
    #[must_use]
    pub fn read(named: Option<&Path>) -> Self {
        let mut sources = Sources::default();
        // One that we may not even look for is told, not passed over.
        let is_there = |file: &PathBuf| file.try_exists().unwrap_or(true);
        let usual = || Some(PathBuf::from(FILE)).filter(is_there);
        if let Some(file) = named.map(Path::to_owned).or_else(usual) {
            sources.read_file(&file);
        }
        sources.read_environment(std::env::vars_os());
        let mut loaded = sources.settled();
        if let Some(name) = std::env::var(SERVICE_NAME).ok().filter(|n| !n.is_empty()) {
            loaded.settings.tracing.service_name = name;
        }
        loaded
    }

    /// Whether nothing is wrong with the settings by themselves.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Whether it is known what all of these keys say.
    #[must_use]
    pub fn knows(&self, keys: &[&str]) -> bool {
        let mut faults = self.faults.iter();
        !faults.any(|fault| keys.iter().any(|key| fault.touches(key)))
    }

    /// Refuses settings that have faults, of their own or these.
    ///
    /// # Errors
    ///
    /// All of them.
    pub fn refuse(&self, others: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        let own = self.faults.iter().map(ToString::to_string);
        let faults: Vec<_> = own.chain(others).collect();
        fault::refuse(&faults)
    }

    /// Every key that has an effect, in the order of the documentation, with what it says and where that comes from.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        let keys = KEYS.iter();
        let used = keys.filter(|key| matches!(key.status, Status::Used | Status::Reloaded));
        used.map(|key| self.effective_of(key)).collect()
    }

    fn effective_of(&self, key: &Key) -> Effective {
        let (value, origin) = match self.given.get(key.name) {
            Some((value, origin)) => (value.as_str(), origin.clone()),
            None => (key.default, Origin::Default),
        };
        let value = if key.is_secret && !value.is_empty() {
            REDACTED.to_owned()
        } else {
            without_users(value)
        };
        Effective {
            key: key.name,
            value,
            origin,
        }
    }

    /// What is not a default, on one line, for the log.
    #[must_use]
    pub fn summary(&self) -> String {
        let given = self.effective().into_iter();
        let given = given.filter(|setting| setting.origin != Origin::Default);
        let said: Vec<_> = given.map(|s| format!("{}={}", s.key, s.value)).collect();
        said.join(" ")
    }

    /// Keys that say something else than they did before: those that count at once, and those that need a start.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Changed {
        let value = |loaded: &Self, key: &Key| {
            let given = loaded.given.get(key.name);
            given.map_or_else(|| key.default.to_owned(), |(value, _)| value.clone())
        };
        let changed = |status: Status| {
            let keys = KEYS.iter().filter(|key| key.status == status);
            let keys = keys.filter(|key| value(self, key) != value(before, key));
            keys.map(|key| key.name).collect()
        };
        Changed {
            at_once: changed(Status::Reloaded),
            at_a_start: changed(Status::Used),
        }
    }
}

/// What of the settings is new.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Keys that can be taken while it runs.
    pub at_once: Vec<&'static str>,
    /// Keys that count from the next start on.
    pub at_a_start: Vec<&'static str>,
}

/// What the sources say, the stronger instead of the weaker.
#[derive(Default)]
struct Sources {
    given: BTreeMap<&'static str, (String, Origin)>,
    faults: Vec<Fault>,
    notes: Vec<String>,
}

impl Sources {
    fn read_file(&mut self, path: &Path) {
        let shown = path.display();
        let text = match files::read_text(path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) => {
                let text = format!("cannot read {shown}: {error}");
                return self.faults.push(Fault::of_source(text));
            }
        };
        let file = ini::parse(&text);
        for number in file.odd {
            let text = format!("{shown}, line {number}: it is no `key = value`");
            self.faults.push(Fault::of_source(text));
        }
        for (name, number) in file.sections {
            self.notes.push(format!(
                "{shown}, line {number}: what stands in a section, here [{name}], does not count"
            ));
        }
        for line in file.lines {
            let Some(key) = find(&line.key) else {
                let text = unknown(&line.key, &format!("{shown}, line {}", line.number));
                self.faults.push(Fault::of_key(line.key, text));
                continue;
            };
            let origin = Origin::File(path.to_owned());
            if self.given.insert(key.name, (line.value, origin)).is_some() {
                let (name, number) = (key.name, line.number);
                self.notes.push(format!(
                    "{shown}, line {number}: {name} stands there once more; the last one counts"
                ));
            }
        }
    }

    /// Empty variables count as unset. What looks like one of ours and is none is told: it cannot be refused, because
    /// Kubernetes makes some for every service that is called so.
    fn read_environment(
        &mut self,
        variables: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) {
        let by_name: BTreeMap<_, _> = KEYS.iter().map(|key| (key.variable(), key)).collect();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else {
                continue;
            };
            if !name.starts_with("FLEET_") || value.is_empty() {
                continue;
            }
            let Some(key) = by_name.get(&name) else {
                let distance = |known: &String| strsim::damerau_levenshtein(&name, known);
                let nearest = by_name.keys().map(|known| (distance(known), known)).min();
                if let Some((0..=2, meant)) = nearest {
                    self.notes.push(format!(
                        "{name} is no setting and does not count; did you mean {meant}?"
                    ));
                }
                continue;
            };
            if let Ok(text) = value.into_string() {
                let origin = Origin::Variable(name);
                self.given.insert(key.name, (text, origin));
            } else {
                let text = format!("{} (from {name}): must be a text in UTF-8", key.name);
                self.faults.push(Fault::of_key(key.name, text));
            }
        }
    }

    /// Settings of it all.
    fn settled(mut self) -> Loaded {
        let mut settings = defaults();
        let mut without_effect = Vec::new();
        for (name, (value, origin)) in &self.given {
            let Some(key) = find(name) else { continue };
            if let Err(fault) = (key.take)(&mut settings, value) {
                // A secret is any text: it cannot be wrong.
                let text = format!("{name} (from {origin}): {fault}");
                self.faults.push(Fault::of_key(*name, text));
            }
            match key.status {
                Status::Used | Status::Reloaded => {}
                Status::Agent => without_effect.push(*name),
                Status::Gone(instead) => {
                    let text = format!("{name} (from {origin}) does nothing: {instead}");
                    self.notes.push(text);
                }
            }
        }
        if !without_effect.is_empty() {
            self.notes.push(format!(
                "without effect, because this version runs no agent: {}",
                without_effect.join(", ")
            ));
        }
        settings.settle();
        if settings.page_size > PAGE_SIZE_MAX {
            self.notes.push(format!(
                "token_limit: {} is more than there may be on a page; {PAGE_SIZE_MAX} counts",
                settings.page_size
            ));
            settings.page_size = PAGE_SIZE_MAX;
        }
        self.faults.extend(together(&settings));
        Loaded {
            settings,
            notes: self.notes,
            given: self.given,
            faults: self.faults,
        }
    }
}

/// A value as it is shown: what stands before an `@` in a URL is a user, and perhaps a password, even where there may
/// be none.
fn without_users(value: &str) -> String {
    const SCHEME_END: &str = "://";
    let mut parts = value.split(SCHEME_END);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown += SCHEME_END;
        match part.rfind('@') {
            None => shown += part,
            Some(at) => shown.extend([REDACTED, &part[at..]]),
        }
    }
    shown
}

/// What every key says by itself.
pub(super) fn defaults() -> Settings {
    let mut settings = Settings::blank();
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        if let Err(fault) = (key.take)(&mut settings, key.default) {
            unreachable!("the default of {}: {fault}", key.name);
        }
    }
    settings.settle();
    settings
}

fn unknown(name: &str, place: &str) -> String {
    let meant = match likeliest(name, KEYS.iter().map(|key| key.name)) {
        Some(meant) => format!("; did you mean {meant}?"),
        None => "; `fleetd config reference` lists what there is".to_owned(),
    };
    format!("{place}: there is no setting {name}{meant}")
}

/// What is wrong with settings that belong together, although each is fine.
fn together(settings: &Settings) -> Vec<Fault> {
    let (etcd, listen) = (&settings.etcd, &settings.listen);
    let mut faults = Vec::new();
    let mut fault = |key: &str, text: &str| faults.push(Fault::of_key(key, text.to_owned()));
    let is_set = |path: &Path| !path.as_os_str().is_empty();
    if is_set(&etcd.password_file) && !settings.etcd_password.is_empty() {
        let text = "etcd_password and etcd_password_file are both set; leave one out";
        fault("etcd_password_file", text);
    }
    if is_set(&listen.cert_file) != is_set(&listen.key_file) {
        let text = "listen_cert_file and listen_key_file go together: set both, or none";
        fault("listen_cert_file", text);
    }
    if is_set(&listen.client_ca_file) && !is_set(&listen.cert_file) {
        let text = "listen_client_ca_file needs listen_cert_file and listen_key_file: clients show certificates over TLS alone";
        fault("listen_client_ca_file", text);
    }
    if listen.is_anonymous && is_set(&listen.client_ca_file) {
        let text =
            "listen_anonymous and listen_client_ca_file contradict each other: leave one out";
        fault("listen_anonymous", text);
    }
    faults
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! From the sources to one value: defaults, then the file, then the environment, then flags.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use figment::Figment;
use figment::providers::Serialized;
use humantime_serde::re::humantime::format_duration;

use super::fault::{self, Fault};
use super::layers::{Layer, Origin};
use super::{Settings, SettingsArgs, addresses};
use super::{fleetd, hosts};

/// The variable that names a database to many programs.
pub(super) const CUSTOM: &str = "DATABASE_URL";
/// The settings that say which database to use.
const DATABASE: [&str; 6] = [
    "database.url",
    "database.host",
    "database.port",
    "database.name",
    "database.username",
    "database.password",
];
/// Where a file is looked for when none is named.
const FILES: [&str; 2] = ["/etc/hyperfleet/config.yaml", "./configs/config.yaml"];
/// Most connections that can be asked for (hyperfleet-ops.md §2.2): more serve nobody better.
const DATABASE_CONNECTIONS_MAX: usize = 200;
/// Most of anything that is counted one by one.
const COUNT_MAX: usize = 1_000_000;
/// Most memory that may be held for clients: 1 TiB.
const BUFFERED_MIB_MAX: usize = 1024 * 1024;
/// Shortest time for which audit entries are kept, if not for ever: a slip must not empty the trail.
const RETENTION_MIN: Duration = Duration::from_hours(1);
/// Longest time that anything may be given: whatever is longer was meant otherwise.
const TIME_MAX: Duration = Duration::from_hours(24 * 365);

/// Settings, with where each of them comes from, and what is wrong with them.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings. What has a fault stands at its default.
    pub settings: Settings,
    /// What is odd about the sources, but stops nothing; to be logged.
    pub notes: Vec<String>,
    /// Where each value comes from that is not a default.
    pub(super) origins: BTreeMap<&'static str, Origin>,
    faults: Vec<Fault>,
}

impl Loaded {
    /// Reads all sources. `defaults` stand where none of them says anything.
    ///
    /// # Errors
    ///
    /// A file that was named and cannot be read; keys that are not known; values that do not fit.
    /// All faults at once, each with the source that it is in.
    pub fn new(args: &SettingsArgs, defaults: &Settings) -> anyhow::Result<Self> {
        let loaded = Self::read(args, defaults);
        loaded.refuse([])?;
        Ok(loaded)
    }

    /// The same for whoever has more to check, and tells all faults together: [`Loaded::refuse`].
    #[must_use]
    pub fn read(args: &SettingsArgs, defaults: &Settings) -> Self {
        let (mut notes, mut faults) = (Vec::new(), Vec::new());
        let mut layers = layers(args);
        // What is said by its older name is weaker than anything that is said by its own.
        let older: Vec<_> = layers.iter_mut().filter_map(Layer::take_older).collect();
        layers.splice(0..0, older);
        prefer_parts(&mut layers);
        let mut given = Layer::default();
        for layer in layers {
            given.values.extend(layer.values);
            notes.extend(layer.notes);
            faults.extend(layer.faults);
        }
        let said = given.values.iter();
        let origins: BTreeMap<_, _> = said.map(|(key, (_, o))| (*key, o.clone())).collect();
        let settings = extracted(given, defaults, &mut faults);
        faults.extend(database_named_twice(&origins));
        faults.extend(addresses::of_database(&settings.database));
        faults.extend(addresses::of_issuers(&settings.server.jwt));
        faults.extend(settings.faults().into_iter().map(Fault::of_value));
        Self {
            settings,
            notes,
            origins,
            faults,
        }
    }

    /// Whether it is known what all of these settings and sections should be.
    #[must_use]
    pub fn knows(&self, sections: &[&str]) -> bool {
        let mut faults = self.faults.iter();
        !faults.any(|fault| sections.iter().any(|section| fault.touches(section)))
    }

    /// Whether nothing is wrong with the settings by themselves.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
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

    /// Whether anything says which database to use, be it what the default says, too.
    #[must_use]
    pub fn names_a_database(&self) -> bool {
        DATABASE.iter().any(|key| self.origins.contains_key(key))
    }
}

/// What is given, on top of the defaults. What does not fit is told and left out: what is found at a
/// time is the first fault alone.
fn extracted(mut given: Layer, defaults: &Settings, faults: &mut Vec<Fault>) -> Settings {
    loop {
        let figment = Figment::from(Serialized::defaults(defaults)).merge(&given);
        let error = match figment.extract() {
            Ok(settings) => return settings,
            Err(error) => error,
        };
        let before = given.values.len();
        for fault in error {
            let (key, fault) = told(&fault, &given);
            faults.push(fault);
            given.values.retain(|given, _| Some(*given) != key);
        }
        if given.values.len() == before {
            return defaults.clone();
        }
    }
}

fn database_named_twice(origins: &BTreeMap<&'static str, Origin>) -> Option<Fault> {
    let url = origins.get("database.url")?;
    let mut parts = DATABASE.iter().skip(1);
    let (part, origin) = parts.find_map(|key| Some((key, origins.get(key)?)))?;
    let text = format!(
        "database.url (from {url}) and {part} (from {origin}) both say which database to use; leave one out"
    );
    Some(Fault::of_key("database.url", text))
}

/// `DATABASE_URL` is a custom of many programs, not a setting of this one: it counts only where
/// nothing else says which database to use.
fn prefer_parts(layers: &mut [Layer]) {
    let is_named = |layer: &Layer| {
        let mut given = layer.values.iter();
        given.any(|(key, (_, origin))| DATABASE.contains(key) && !is_custom(origin))
    };
    if !layers.iter().any(is_named) {
        return;
    }
    for layer in layers {
        let custom = layer.values.get("database.url");
        if custom.is_some_and(|(_, origin)| is_custom(origin)) {
            layer.values.remove("database.url");
            layer.notes.push(format!(
                "{CUSTOM} does not count: the settings name a database"
            ));
        }
    }
}

fn is_custom(origin: &Origin) -> bool {
    *origin == Origin::Variable(CUSTOM.to_owned())
}

/// Everything but the defaults, weakest first.
fn layers(args: &SettingsArgs) -> Vec<Layer> {
    let file = file(args).map(|file| Layer::of_file(&file));
    let rest = [Layer::of_environment(), Layer::of_flags(args)];
    file.into_iter().chain(rest).collect()
}

/// The file that was named, or else the one that is where one usually is.
fn file(args: &SettingsArgs) -> Option<PathBuf> {
    let variable = || std::env::var_os("HYPERFLEET_CONFIG").filter(|path| !path.is_empty());
    let named = args
        .config
        .clone()
        .or_else(|| variable().map(PathBuf::from));
    let usual = || FILES.iter().map(PathBuf::from).find(|file| file.is_file());
    named.or_else(usual)
}

/// What is wrong with which setting, and where that is to be mended: what the catalogue cannot know,
/// such as members of entries.
fn told(fault: &figment::Error, given: &Layer) -> (Option<&'static str>, Fault) {
    let path = fault.path.join(".");
    let of = |key: &str| path == key || path.starts_with(&format!("{key}."));
    let found = given.values.iter().find(|(key, _)| of(key));
    let origin = found.map_or_else(String::new, |(_, (_, origin))| format!(" (from {origin})"));
    let hint = match &fault.kind {
        figment::error::Kind::UnknownField(name, known) => {
            let meant = super::layers::likeliest(name, known.iter().copied());
            meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
        }
        _ => String::new(),
    };
    let text = format!("{path}{origin}: {}{hint}", fault.kind);
    (found.map(|(key, _)| *key), Fault::of_key(path, text))
}

impl Settings {
    /// What of single values makes no sense.
    fn faults(&self) -> Vec<String> {
        let mut faults = self.faults_of_counts();
        faults.extend(self.faults_of_times());
        faults.extend(hosts::faults(self));
        if self.tracing.enabled && self.tracing.service_name.is_empty() {
            faults.push("tracing.service_name is empty: traces need a name".to_owned());
        }
        faults
    }

    fn faults_of_counts(&self) -> Vec<String> {
        let (pool, limits) = (&self.database.pool, &self.server.limits);
        let counts = [
            (
                "database.pool.max_connections",
                pool.max_connections,
                DATABASE_CONNECTIONS_MAX,
            ),
            (
                "server.limits.max_connections",
                limits.max_connections,
                COUNT_MAX,
            ),
            (
                "server.limits.max_in_flight",
                limits.max_in_flight,
                COUNT_MAX,
            ),
            (
                "server.limits.max_buffered_mib",
                limits.max_buffered_mib,
                BUFFERED_MIB_MAX,
            ),
            (
                "fleet.page_size",
                self.fleet.page_size,
                fleetd::PAGE_SIZE_MAX,
            ),
        ];
        let odd = counts
            .into_iter()
            .filter(|(_, count, most)| !(1..=*most).contains(count));
        odd.map(|(key, count, most)| format!("{key} is {count}: set it to between 1 and {most}"))
            .collect()
    }

    fn faults_of_times(&self) -> Vec<String> {
        let (timeouts, health, pool) = (&self.server.timeouts, &self.health, &self.database.pool);
        let stuck = self.metrics.reconciliation_stuck_threshold;
        let none = Duration::ZERO;
        let (instant, second) = (Duration::from_millis(1), Duration::from_secs(1));
        let (minutes, day) = (Duration::from_mins(2), Duration::from_hours(24));
        #[rustfmt::skip]
        let times = [
            ("server.timeouts.read", timeouts.read, second, day),
            ("server.timeouts.write", timeouts.write, second, day),
            ("server.timeouts.idle", timeouts.idle, second, day),
            // As long as orchestrators wait for the end, and for a probe.
            ("health.shutdown_timeout", health.shutdown_timeout, second, minutes),
            ("health.shutdown_delay", health.shutdown_delay, none, minutes),
            ("health.db_ping_timeout", health.db_ping_timeout, instant, minutes),
            ("fleet.etcd.request_timeout", self.fleet.etcd.request_timeout, Duration::from_millis(100), Duration::from_mins(1)),
            ("metrics.reconciliation_stuck_threshold", stuck, second, TIME_MAX),
            ("database.pool.conn_retry_interval", pool.conn_retry_interval, instant, day),
            ("database.pool.conn_max_lifetime", pool.conn_max_lifetime, none, TIME_MAX),
            ("database.pool.conn_max_idle_time", pool.conn_max_idle_time, none, TIME_MAX),
            ("database.pool.request_timeout", pool.request_timeout, none, day),
            ("database.pool.advisory_lock_timeout", pool.advisory_lock_timeout, none, day),
        ];
        let mut faults: Vec<_> = times
            .into_iter()
            .filter(|(_, time, least, most)| !(*least..=*most).contains(time))
            .map(|(key, time, least, most)| {
                let [time, least, most] = [time, least, most].map(format_duration);
                format!("{key} is {time}: set it to between {least} and {most}")
            })
            .collect();
        if let Some(kept) = self.audit.retention
            && kept < RETENTION_MIN
        {
            faults.push(format!(
                "audit.retention is {}: set it to at least {}, or leave it out to keep entries for ever",
                format_duration(kept),
                format_duration(RETENTION_MIN),
            ));
        }
        faults
    }
}

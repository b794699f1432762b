//! Metrics of an issuer's keys. Several entries of the settings may name one issuer, but metrics have one series for
//! it: the entry in the worst state decides its value.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use strum::IntoStaticStr;

/// The source of keys, by its name in metrics. Keys of a file come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Origin {
    File,
    Address,
}

/// The gauges of an issuer, as one entry of the settings sets them.
#[derive(Debug)]
pub(super) struct EntryGauges {
    entry: usize,
    issuer: String,
    /// Those of all entries that name the issuer.
    values: Arc<Mutex<Values>>,
}

/// The values of each entry: its usable keys, and when it last read keys from a source.
type Values = BTreeMap<(Option<Origin>, usize), f64>;

/// The gauges of entries that name these issuers, in their order.
pub(super) fn gauges_of(issuers: &[String]) -> Vec<EntryGauges> {
    let mut by_name: BTreeMap<&str, Arc<Mutex<Values>>> = BTreeMap::new();
    let gauges = issuers.iter().enumerate().map(|(entry, name)| EntryGauges {
        entry,
        issuer: name.clone(),
        values: Arc::clone(by_name.entry(name).or_default()),
    });
    gauges.collect()
}

impl EntryGauges {
    /// Sets the entry's number of usable keys. The metric is the least of all entries, for an alert on 0.
    pub(super) fn show_keys(&self, keys: usize) {
        let issuer = self.issuer.clone();
        let gauge = metrics::gauge!("hyperfleet_api_jwks_keys", "issuer" => issuer);
        let keys = u32::try_from(keys).unwrap_or(u32::MAX);
        self.set(None, keys.into(), &gauge);
    }

    /// Sets when the entry last read keys from a source, in seconds since 1970. The metric is the earliest of all
    /// entries, for an alert on its age.
    pub(super) fn show_success(&self, origin: Origin, seconds: f64) {
        let gauge = metrics::gauge!(
            "hyperfleet_api_jwks_last_success_timestamp_seconds",
            "issuer" => self.issuer.clone(),
            "source" => <&str>::from(origin)
        );
        self.set(Some(origin), seconds, &gauge);
    }

    /// Changes a value of this entry, and sets its gauge to the least of all entries, under one lock for both.
    fn set(&self, origin: Option<Origin>, value: f64, gauge: &metrics::Gauge) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert((origin, self.entry), value);
        let of_all = values.range((origin, 0)..=(origin, usize::MAX));
        gauge.set(of_all.map(|(_, value)| *value).fold(value, f64::min));
    }
}

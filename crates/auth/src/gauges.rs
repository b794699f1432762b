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
    issuer: Arc<IssuerGauges>,
}

#[derive(Debug)]
struct IssuerGauges {
    name: String,
    values: Mutex<BTreeMap<usize, EntryValues>>,
}

#[derive(Debug, Default)]
struct EntryValues {
    keys: u32,
    /// When keys were last read from each source, in seconds since 1970.
    successes: BTreeMap<Origin, f64>,
}

/// The gauges of entries that name these issuers, in their order.
pub(super) fn gauges_of(issuers: &[String]) -> Vec<EntryGauges> {
    let mut by_name: BTreeMap<&str, Arc<IssuerGauges>> = BTreeMap::new();
    let gauges = issuers.iter().enumerate().map(|(entry, name)| {
        let issuer = by_name.entry(name).or_insert_with(|| {
            Arc::new(IssuerGauges {
                name: name.clone(),
                values: Mutex::default(),
            })
        });
        EntryGauges {
            entry,
            issuer: Arc::clone(issuer),
        }
    });
    gauges.collect()
}

impl EntryGauges {
    /// Sets the entry's number of usable keys. The metric is the least of all entries, for an alert on 0.
    pub(super) fn show_keys(&self, keys: usize) {
        let keys = u32::try_from(keys).unwrap_or(u32::MAX);
        self.change(
            |values| values.keys = keys,
            |all| {
                let least = all.values().map(|values| values.keys).min().unwrap_or(keys);
                metrics::gauge!("hyperfleet_api_jwks_keys", "issuer" => self.issuer.name.clone())
                    .set(least);
            },
        );
    }

    /// Sets when the entry last read keys from a source. The metric is the earliest of all entries, for an alert on
    /// its age.
    pub(super) fn show_success(&self, origin: Origin, seconds: f64) {
        self.change(
            |values| {
                values.successes.insert(origin, seconds);
            },
            |all| {
                let of_source = all.values().filter_map(|v| v.successes.get(&origin));
                metrics::gauge!(
                    "hyperfleet_api_jwks_last_success_timestamp_seconds",
                    "issuer" => self.issuer.name.clone(),
                    "source" => <&str>::from(origin)
                )
                .set(of_source.copied().fold(seconds, f64::min));
            },
        );
    }

    /// Changes this entry's values and updates the metric, under one lock for all entries.
    fn change(
        &self,
        change: impl FnOnce(&mut EntryValues),
        show: impl FnOnce(&BTreeMap<usize, EntryValues>),
    ) {
        let values = self.issuer.values.lock();
        let mut values = values.unwrap_or_else(PoisonError::into_inner);
        change(values.entry(self.entry).or_default());
        show(&values);
    }
}

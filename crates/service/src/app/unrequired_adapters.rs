//! Finds adapters that report on resources of a kind that does not require them. `Reconciled` ignores their reports,
//! so the kind waits in vain for an adapter whose name is misspelled.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hyperfleet_domain::Entity;

/// Pairs of kind and adapter that the log names at most. Clients choose the names of adapters: without a limit they
/// could fill the log and the memory.
const NAMED_MAX: usize = 100;

/// The pairs of kind and adapter that the log has named since the start.
#[derive(Debug, Default)]
pub(super) struct UnrequiredAdapters(Mutex<BTreeSet<(String, String)>>);

/// A stored report of an adapter that the kind does not require.
#[derive(Debug)]
pub(super) struct UnrequiredReport {
    named: Arc<UnrequiredAdapters>,
    pub(super) kind: String,
    adapter: String,
    required: String,
}

impl UnrequiredAdapters {
    /// Returns a warning for the stored report of an adapter that the kind does not require.
    pub(super) fn report(
        self: &Arc<Self>,
        kind: &Entity,
        adapter: &str,
    ) -> Option<UnrequiredReport> {
        kind.ignores(adapter).then(|| UnrequiredReport {
            named: Arc::clone(self),
            kind: kind.kind.clone(),
            adapter: adapter.to_owned(),
            required: kind.required_adapters.join(", "),
        })
    }

    /// Whether the log has yet to name a pair: once each, up to the limit.
    fn is_new(&self, kind: &str, adapter: &str) -> bool {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.len() < NAMED_MAX && named.insert((kind.to_owned(), adapter.to_owned()))
    }
}

impl UnrequiredReport {
    /// Warns of the first report of its kind and adapter.
    pub(super) fn warn(&self) {
        if self.named.is_new(&self.kind, &self.adapter) {
            tracing::warn!(
                resource_kind = self.kind,
                adapter = self.adapter,
                required_adapters = self.required,
                to_do = "if the name is misspelled, correct it in the adapter or in entities[].required_adapters",
                "report of an adapter that the kind does not require"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_each_pair_once_and_not_without_end() {
        let named = UnrequiredAdapters::default();
        assert!(named.is_new("Cluster", "dsn"));
        assert!(!named.is_new("Cluster", "dsn"));
        assert!(named.is_new("NodePool", "dsn"));
        let more = (0..NAMED_MAX).filter(|n| named.is_new("Cluster", &n.to_string()));
        assert_eq!(more.count(), NAMED_MAX - 2);
    }
}

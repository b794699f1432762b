//! The configured rules that derive conditions: for which resources they need more to be read.

use super::Service;

impl Service {
    /// The kinds with rules, if a resource may be of one of them: it is of `kind`, or of any.
    pub(super) fn with_rules(&self, kind: Option<&str>) -> &[String] {
        match kind {
            Some(kind) if self.registry.rules(kind).is_none() => &[],
            _ => self.registry.kinds_with_rules(),
        }
    }

    /// The same for a resource with its family: the owners above it and what it owns.
    pub(super) fn family_with_rules(&self, kind: Option<&str>) -> &[String] {
        match kind {
            Some(kind) if !self.registry.family_has_rules(kind) => &[],
            _ => self.registry.kinds_with_rules(),
        }
    }
}

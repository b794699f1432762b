//! Failures of rules.

use crate::ResourceId;

/// A rule that failed. Its condition stays as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: String,
    pub id: ResourceId,
    pub rule: String,
    /// What went wrong: short, and without any value, which might be a secret.
    pub error: String,
}

//! Why a rule gave no condition.

use crate::domain::ResourceId;

/// A rule that could not be computed. Its condition stays as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of which kind the resource is.
    pub kind: String,
    /// Which resource.
    pub id: ResourceId,
    /// The type of the condition.
    pub rule: String,
    /// What went wrong: short, and without any value, which might be a secret.
    pub error: String,
}

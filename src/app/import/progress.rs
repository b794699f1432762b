//! The progress of a run.

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportStep {
    /// List both databases.
    Plan,
    /// Remove what the source has removed.
    Remove,
    /// Write resources.
    Bring,
    /// Write references.
    Link,
    /// Compare both databases.
    Verify,
}

/// The progress of a step, in resources. Planning has no total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    pub step: ImportStep,
    pub done: usize,
    pub total: usize,
}

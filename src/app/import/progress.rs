//! How far a run is.

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportStep {
    /// Lists both databases.
    Plan,
    /// Removes what the source no longer has.
    Remove,
    /// Writes resources.
    Bring,
    /// Writes references.
    Link,
    /// Compares both databases.
    Verify,
}

/// How far a step is, in resources. The plan has no total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    /// The step.
    pub step: ImportStep,
    /// Resources that are done.
    pub done: usize,
    /// All resources of the step.
    pub total: usize,
}

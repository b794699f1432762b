//! The progress of a run.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportStep {
    Plan,
    /// Remove what the source has removed.
    Remove,
    Bring,
    Link,
    Verify,
}

/// The progress of a step, in resources. Planning has no total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    pub step: ImportStep,
    pub done: usize,
    pub total: usize,
}

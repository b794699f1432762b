//! All that lifecycle decisions about a resource are made from.

use super::mapping::Facts;
use super::{ReportState, ResourceState};

/// A resource's life and the evidence: all that lifecycle decisions are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSnapshot {
    /// Its life.
    pub state: ResourceState,
    /// The latest report of each adapter.
    pub reports: Vec<ReportState>,
    /// How many resources it owns, finalizing ones too; counted up to two: whether any are left once
    /// one of them is gone is all that matters, and a parent may have very many.
    pub children: usize,
    /// What rules need beside; unset for kinds without rules.
    pub facts: Option<Box<Facts>>,
}

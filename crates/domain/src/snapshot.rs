//! The input of lifecycle decisions about a resource.

use super::condition_rules::Facts;
use super::{ReportState, ResourceState};

/// A resource's state and its reports: the complete input of lifecycle decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSnapshot {
    pub state: ResourceState,
    /// The latest report of each adapter.
    pub reports: Vec<ReportState>,
    /// Number of resources it owns, finalizing ones included, counted up to two: decisions need only whether any is
    /// left once one of them is removed, and a parent may have very many.
    pub children: usize,
    /// The further input of rules; unset for kinds without rules.
    pub facts: Option<Box<Facts>>,
}

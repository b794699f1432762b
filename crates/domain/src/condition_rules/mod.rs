//! Conditions that configured rules derive from a resource and its reports.
//!
//! ```text
//! configuration ─▶ config ─▶ compile ─▶ Rules              every error is reported at start
//! resource, reports ─▶ view (masked) ─▶ Rules::derive ─▶ conditions, failures
//! ```
//!
//! Rules are written in CEL (`docs/guides/derived-conditions.md`). They run inside every write of a resource, so they
//! may neither harm nor delay it: the guards are those of `hyperfleet_expressions`. A rule that fails leaves its
//! condition as it was, and its failure is reported.

mod compile;
mod config;
mod failure;
mod rules;
mod view;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

pub(super) use compile::compile;
pub use config::{ExpressionConfig, OutputConfig, RuleConfig, TYPE_BYTES_MAX};
pub use failure::Failure;
pub(super) use rules::Rule;
pub use rules::{Derived, KindRules, MESSAGE_BYTES_MAX, REASON_BYTES_MAX};

use super::{Condition, Labels, ReportState, Resource, ResourceState, Tenancy};

/// The input of rules beside a resource's state: read for kinds with rules only.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub spec: Map<String, Value>,
    pub labels: Labels,
    pub tenancy: Tenancy,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    /// The author of the last change of the desired state.
    pub updated_by: String,
    /// The data of each adapter's report.
    pub data: BTreeMap<String, Data>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Read(Map<String, Value>),
    /// More than rules read.
    TooLarge,
}

/// The input of rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleInput<'a> {
    /// The resource after the change. Its conditions are ignored.
    pub state: &'a ResourceState,
    pub facts: &'a Facts,
    /// The stored reports, one per adapter, in any order.
    pub reports: &'a [ReportState],
    pub previous: &'a [Condition],
}

/// The paths of a kind's resources, up to their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paths {
    /// Path segment of the kind.
    pub(super) plural: String,
    /// Kind and path segment of its owner.
    pub(super) parent: Option<(String, String)>,
}

impl Facts {
    /// The facts of a resource without reports.
    pub fn of(resource: &Resource, data: BTreeMap<String, Data>) -> Self {
        Self {
            spec: resource.spec.clone(),
            labels: resource.labels.clone(),
            tenancy: resource.tenancy.clone(),
            created_at: resource.created_at,
            created_by: resource.created_by.clone(),
            updated_by: resource.updated_by.clone(),
            data,
        }
    }
}

impl Data {
    /// Data of one report that rules read at most, in bytes of JSON.
    pub const BYTES_MAX: usize = 65_536;

    /// The data of a report, unless it is too large.
    pub fn of(data: Map<String, Value>) -> Self {
        let length = serde_json::to_string(&data).map_or(usize::MAX, |text| text.len());
        if length <= Self::BYTES_MAX {
            Self::Read(data)
        } else {
            Self::TooLarge
        }
    }
}

impl Paths {
    /// The path of a resource: below its owner, one level deep.
    fn href(&self, state: &ResourceState) -> String {
        match self.owner(state) {
            Some((_, owner)) => format!("{owner}/{}/{}", self.plural, state.id),
            None => format!("{}/{}/{}", super::PATHS_BASE, self.plural, state.id),
        }
    }

    /// The kind and the path of its owner.
    fn owner(&self, state: &ResourceState) -> Option<(&str, String)> {
        let ((kind, plural), owner) = self.parent.as_ref().zip(state.owner)?;
        let href = format!("{}/{plural}/{owner}", super::PATHS_BASE);
        Some((kind, href))
    }
}

//! Conditions that configured rules derive from a resource and its reports.
//!
//! ```text
//! configuration ─▶ config ─▶ compile ─▶ Rules              every fault is reported at start
//! resource, reports ─▶ view (masked) ─▶ Rules::derive ─▶ conditions, failures
//! ```
//!
//! Rules are written in CEL (`docs/guides/derived-conditions.md`). They run inside every write of a resource, so they may neither
//! harm nor delay it: the guards are those of `hyperfleet_expressions`. A rule that fails leaves its condition as it
//! was, and its failure is reported.

mod compile;
mod config;
mod failure;
mod rules;
mod view;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

pub(super) use compile::compile;
pub use config::{ExpressionConfig, OutputConfig, RULES_MAX, RuleConfig, TYPE_BYTES_MAX};
pub use failure::Failure;
pub(super) use rules::Rule;
pub use rules::{Derived, KindRules, MESSAGE_BYTES_MAX, REASON_BYTES_MAX};

use super::{Condition, Labels, ReportState, Resource, ResourceState, Tenancy};

/// What rules need of a resource beside its life: read for kinds with rules only.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What is wanted.
    pub spec: Map<String, Value>,
    /// Its labels.
    pub labels: Labels,
    /// Whose it is.
    pub tenancy: Tenancy,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// By whom.
    pub created_by: String,
    /// Who last changed what is wanted.
    pub updated_by: String,
    /// What each adapter added to its report.
    pub data: BTreeMap<String, Data>,
}

/// What an adapter added to its report.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// This.
    Read(Map<String, Value>),
    /// More than rules look at.
    TooLarge,
}

/// What rules are applied to.
#[derive(Debug, Clone, Copy)]
pub struct RuleInput<'a> {
    /// The resource as it will be. Its conditions are not looked at.
    pub state: &'a ResourceState,
    /// The rest of it.
    pub facts: &'a Facts,
    /// The stored reports, one per adapter, in any order.
    pub reports: &'a [ReportState],
    /// The conditions as they were.
    pub previous: &'a [Condition],
}

/// Where the resources of a kind are found: what stands before their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paths {
    /// Path segment of the kind.
    pub(super) plural: String,
    /// Kind and path segment of its owner.
    pub(super) parent: Option<(String, String)>,
}

impl Facts {
    /// Those of a resource on which nobody has reported.
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
    /// Most data of one report that rules look at, in bytes of JSON.
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

    /// The kind of its owner, and where that is found.
    fn owner(&self, state: &ResourceState) -> Option<(&str, String)> {
        let ((kind, plural), owner) = self.parent.as_ref().zip(state.owner)?;
        let href = format!("{}/{plural}/{owner}", super::PATHS_BASE);
        Some((kind, href))
    }
}

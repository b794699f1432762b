//! Resources and changes as clients ask for them: each part checked by itself, links not yet against
//! what they lead to.

use serde_json::{Map, Value};

use super::reference::RequestedReferences;
use super::{Labels, ResourceName};

/// A resource to be created.
#[derive(Debug, Clone)]
pub struct RequestedResource {
    /// Its name.
    pub name: ResourceName,
    /// What is wanted.
    pub spec: Map<String, Value>,
    /// Its labels.
    pub labels: Labels,
    /// Its links.
    pub references: RequestedReferences,
}

/// A change of a resource; unset parts stay as they are.
#[derive(Debug, Clone, Default)]
pub struct RequestedPatch {
    /// What is wanted.
    pub spec: Option<Map<String, Value>>,
    /// The labels.
    pub labels: Option<Labels>,
    /// The links.
    pub references: Option<RequestedReferences>,
}

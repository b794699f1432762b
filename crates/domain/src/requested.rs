//! Resources and reports as clients send them. Each part is already checked by itself; references are not yet checked
//! against their targets.

use serde_json::{Map, Value};

use super::precondition::Preconditions;
use super::reference::RequestedReferences;
use super::{Labels, Report, ResourceName};

/// A resource to be created.
#[derive(Debug, Clone)]
pub struct RequestedResource {
    pub name: ResourceName,
    pub spec: Map<String, Value>,
    pub labels: Labels,
    pub references: RequestedReferences,
}

/// A report, with what the request demands of the state of the resource.
pub struct ConditionalReport<'a> {
    pub report: Report,
    pub conditions: &'a Preconditions,
}

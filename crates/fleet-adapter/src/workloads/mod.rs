//! Workloads: from configuration to the unit files of a resource.

mod config;
mod render;
mod template;
mod values;

pub use config::{FILE_BYTES_MAX, WORKLOADS_MAX, WorkloadConfig};
pub use render::{REPLICAS_MAX, RenderInput, Rendered, Unrenderable, Workloads};

/// Variables of expressions.
const VARIABLES: [&str; 4] = ["resource", "owner", "index", "short_id"];

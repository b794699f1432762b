//! Workloads: which units the resources of a kind need, from configuration to unit files.

mod config;
mod render;
mod template;
mod values;

pub use config::{FILE_BYTES_MAX, WORKLOADS_MAX, WorkloadConfig};
pub use render::{REPLICAS_MAX, Rendered, Subject, Unrenderable, Workloads};

/// What expressions may name.
const VARIABLES: [&str; 4] = ["resource", "owner", "index", "short_id"];

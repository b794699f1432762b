//! The section `fleet.adapter` of the settings.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::RemovalLimit;
use crate::workloads::WorkloadConfig;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub enabled: bool,
    /// The adapter's name in reports.
    pub name: String,
    /// URL of the API; empty for the listener of the process itself.
    pub api_url: String,
    /// File with its token; empty for none.
    pub token_file: PathBuf,
    #[serde(default)]
    pub workloads: Vec<WorkloadConfig>,
    /// Number of resources that it works on at a time.
    pub workers: usize,
    #[serde(with = "humantime_serde")]
    pub poll_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub sweep_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub report_interval: Duration,
    /// How long units remain after their resource was removed.
    #[serde(with = "humantime_serde")]
    pub orphan_grace: Duration,
    pub removal_limit: RemovalLimit,
    #[serde(with = "humantime_serde")]
    pub lease_time: Duration,
}

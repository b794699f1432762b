//! Settings of a daemon: a table of rows, and sources merged by figment.
//!
//! ```text
//! table     one row for each setting: type, default, limits, variable, flag, help, status
//! sources   defaults ◀ file (yaml, ini) ◀ environment ◀ flags     later ones win
//! loaded    typed settings, the origin of each value, and every fault of every source
//! ```
//!
//! A product provides its table, and checks of the loaded settings.

mod args;
mod environment;
mod fault;
mod hosts;
mod ini;
mod layer;
mod lines;
mod load;
mod misfit;
mod report;
mod secret;
mod sections;
mod setting;
mod table;
mod yaml;

pub use args::{
    CheckOptions, GivenFlags, OpenapiFormat, OpenapiOptions, OutputFormat, flags, given_flags,
};
pub use fault::SettingFault;
pub use hosts::{host_fault, is_host, shared_ports};
pub use layer::Layer;
pub use load::{Changed, Loaded};
pub use report::{Effective, as_json, as_table};
pub use secret::{REDACTED, Secret};
pub use sections::{
    Format, Level, LimitSettings, Logging, Output, Rate, RedactionSettings, Timeouts, Tls, Tracing,
};
pub use setting::{Setting, SettingKind, SettingStatus, row};
pub use table::{SettingTable, default_layers, defaults};

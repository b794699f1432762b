//! Settings of a daemon: a table of rows, and sources that figment merges into the types of the product.
//!
//! ```text
//! table     one row for each setting: type, default, limits, variable, flag, help, status
//! Sources   file (yaml, ini) ◀ variables ◀ flags                  later ones override earlier ones
//! Loaded    defaults ◀ sources: typed settings, and the source of each value
//! ```
//!
//! A product provides its table, and checks of the loaded settings.

mod args;
mod ini;
mod load;
mod report;
mod secret;
mod sections;
mod setting;
mod sources;
mod table;
mod variables;
mod yaml;

pub use args::{
    CheckOptions, FlagValues, OpenapiFormat, OpenapiOptions, OutputFormat, flag_help, flag_values,
    flags,
};
pub use load::{Changed, Loaded};
pub use report::{Effective, as_json, as_table};
pub use secret::{REDACTED, Secret};
pub use sections::{
    Format, Level, LimitSettings, Logging, Output, Rate, RedactionSettings, Timeouts, Tls, Tracing,
};
pub use setting::{Setting, SettingKind, SettingStatus, row};
pub use sources::Sources;
pub use table::{SettingTable, default_layers, defaults};

//! Settings of fleetd: a file as the older fleetd read it, and variables `FLEET_…`, which count before it.
//!
//! Beside the names nothing is shared with the settings of the service: there are no sections, no flags, and values
//! are written as people wrote them for the older fleetd.

mod address;
mod args;
mod ini;
mod keys;
mod load;
mod report;
mod settings;
mod values;

pub use address::Address;
pub use args::{Args, CheckArgs, Command, ConfigCommand};
pub(in crate::config) use keys::PAGE_SIZE_MAX;
pub use load::{Changed, Loaded};
pub use report::reference;
pub use settings::{Engine, Listen, Settings};
pub use values::machine_id;

//! Settings of fleetd: a file in the older fleetd's format, and variables `FLEET_…`, which take precedence.
//!
//! There are no sections and no flags, and values have the older fleetd's notations.

mod address;
mod args;
mod keys;
mod load;
mod sections;
mod values;

use hyperfleet_server_kit as kit;

pub use address::Address;
pub use args::{Args, Command, ConfigCommand};
pub use keys::reference;
pub use load::load;
pub use sections::{AgentSettings, EngineSettings, Listen, Settings};
pub use values::machine_id;

pub type Loaded = kit::settings::Loaded<Settings>;

/// Most items of a page.
const PAGE_SIZE_MAX: usize = hyperfleet_fleet::settings::PAGE_SIZE_MAX;

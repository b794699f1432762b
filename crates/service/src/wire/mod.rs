//! Request and response bodies: their form on the wire, and their conversion to domain values.
//!
//! Bodies are read member by member instead of by derive, so that all violations of a body are found together, each
//! with its path. Answers have their members in alphabetical order.

mod continuation;
mod fields;
mod fingerprint;
mod history;
mod json;
mod leases;
mod members;
mod patch;
mod query;
mod requests;
pub mod schemas;
mod views;
mod watching;

pub use continuation::{Continuation, ListKey};
pub use fields::{Fields, UnknownFields};
pub use fingerprint::fingerprint;
pub use json::{BodyError, DEPTH_MAX};
pub use leases::{lease, lease_claim};
pub use patch::{PatchFormat, patch};
pub use query::{Params, ParamsError, real_target};
pub use requests::{Kinds, force_delete, kind_of, report, resource};
pub use views::dry_run::dry_run;
pub use views::{BASE, Views};
pub use watching::{EventForm, Events};

//! Imports the database of the older service: `hyperfleet-api import`.
//!
//! ```text
//! plan      lists the source; which resources vanished, in which order to import the rest     plan
//! remove    resources that the source no longer has, children first                           pass
//! import    batch by batch: compare, read, translate, write                                   pass, translate, reports
//! link      references, once all targets are here                                             pass
//! compare   digests of the written resources in both databases                                pass, digest
//! ```
//!
//! A pass reads the complete source, as of one moment, and makes this database equal to it. It writes only what
//! differs, so it can be repeated at any time, also after an interruption: nothing but the rows themselves says how far
//! a pass came. Table `imported_resources` has the revision that the import left each resource at. If the resource has
//! another revision, a client or an adapter changed it: the import reports the resource and leaves it.

mod digest;
mod document;
mod error;
mod finding;
mod pass;
mod plan;
mod progress;
mod report;
mod reports;
mod row;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod translate;

pub use error::Error;
pub use finding::{ImportFinding, ImportReason};
pub use pass::{Databases, ImportHooks, PassOptions, import};
pub use progress::{ImportProgress, ImportStep, ProgressLines};
pub use report::{Difference, ImportReport, KindTally, Verification};
pub use target::ImportTarget;

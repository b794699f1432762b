//! The import from the older service's database: reads that one, and records in this one what was imported.
//!
//! ```text
//! Source (its tables, one read-only snapshot) ── app::import ──▶ Db: resources, reports, references,
//!                                                                    imports, imported_resources
//! ```

mod columns;
mod conflicts;
mod digest;
mod removal;
mod source;
mod state;
mod write;

pub use conflicts::Conflict;
pub use digest::{Digests, LeftOut};
pub use source::{ImportSource, SourceSettings};
pub use state::ImportState;
pub use write::WrittenReference;

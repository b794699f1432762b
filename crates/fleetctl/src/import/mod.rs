//! Imports units of an old fleet from its etcd v2: reads them, and plans the changes.
//!
//! ```text
//! etcd v2, or a file ─▶ dump ─▶ old units ─▶ plan ─▶ table, actions
//!                                             ▲
//!                              units of this cluster
//! ```

mod dump;
mod fetch;
mod plan;

pub(crate) use dump::{OldUnit, old_units};
pub(crate) use fetch::fetch;
pub(crate) use plan::{Action, Import, plan};

//! The wire format of fleet's API, version 1: the older system's, so that its clients continue to work.
//!
//! Responses have their members in alphabetical order and omit empty ones.

mod decode;
pub mod discovery;
mod drain;
mod event;
mod metadata;
mod query;
mod rebalance;
pub mod schemas;
mod unit;
mod views;

pub use decode::Undecodable;
pub use drain::{DEADLINE_SECONDS_MAX, InvalidDrain, drain_deadline};
pub use event::{
    EVENT_STREAM, HEARTBEAT, beginning, delete, entry, heartbeat, listed, position, put,
};
pub use metadata::{CHANGES_MAX, InvalidChange, MetadataChange, metadata_changes};
pub use query::{InvalidParameter, Query};
pub use rebalance::{InvalidMoves, MOVES_MAX, moves};
pub use unit::{OtherName, UnitRequest, unit_request};
pub use views::{
    DrainView, ErrorBody, ErrorView, ExplanationView, LeftUnit, MachinePage, MachineView, MoveView,
    RebalanceView, RefusalView, StatePage, StateView, UnitGone, UnitPage, UnitView,
};

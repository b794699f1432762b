//! The common part of the HTTP listeners of all daemons.
//!
//! ```text
//! span ▸ watch (line, metrics) ▸ frame (panics, errors) ▸ gzip ▸ routes ▸ admission ▸ handler
//! ```
//!
//! A product brings its routes, a [`Wording`] for errors, and a hook that identifies the caller.

mod admission;
mod answer;
mod body;
mod body_length;
mod caching;
mod connection;
mod encoding;
mod endless;
mod frame;
mod gate;
mod headers;
mod memory;
mod operation;
mod pieces;
mod probes;
mod problem;
mod rate;
mod refusals;
mod request_id;
mod routes;
mod telemetry;

pub use admission::{
    Admission, Limits, ProvenCaller, WATCHER_BYTES, WATCHER_BYTES_MIN, WatcherSlot, admit,
};
pub use answer::{PendingResponse, pieces};
pub use body::leave;
pub use body_length::is_chunked;
pub use caching::{CallerHeaders, FOR_EVERYBODY, FOR_ITS_CALLER};
pub use connection::Connection;
pub use encoding::{PLAIN, UNDERSTOOD, gzip_below, gzip_in_place, weight};
pub use endless::{BadLastEventId, endless, last_event_id};
pub use frame::{Arrival, ChooseWording, ErrorResponse, Wording, frame};
pub use gate::{Gate, Phase, Readiness};
pub use headers::ResponseHeaders;
pub use memory::ResponseBudget;
pub use operation::Operation;
pub use pieces::PIECE;
pub use probes::{Scrape, health, metrics, scraped};
pub use problem::{BODY_BYTES_MAX, Problem, ProblemKind, WatcherRefusal};
pub use request_id::RequestId;
pub use routes::{resource, unknown_path};
pub use telemetry::{
    QuietClient, Redaction, RequestLog, RequestSpan, RoutePath, log_body, observe,
};

//! Telemetry of requests: one log line each, metrics, and a span if traces are kept.
//!
//! ```text
//! span (id, trace) ▸ watch (line, metrics) ▸ frame ▸ … ▸ handler
//! ```

mod masks;
mod request;
mod series;

pub use masks::{Masks, tell_body};
pub use request::{RequestLog, RequestSpan, watch};
pub use series::RoutePath;

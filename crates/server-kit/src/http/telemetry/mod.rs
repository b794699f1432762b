//! Telemetry of requests: one log line each, metrics, and a span if traces are exported.
//!
//! ```text
//! span (id, trace) ▸ observe (line, metrics) ▸ frame ▸ … ▸ handler
//! ```

mod redaction;
mod request;
mod series;

pub use redaction::{Redaction, log_body};
pub use request::{QuietClient, RequestLog, RequestSpan, observe};
pub use series::RoutePath;

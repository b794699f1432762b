//! What the service tells of requests: one line each, what is counted of them, and a span where
//! traces are kept.
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

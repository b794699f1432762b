//! What the service tells of requests: one line each, what is counted of them, and a span where
//! traces are kept.
//!
//! ```text
//! span (id, trace) ▸ watch (line, metrics) ▸ frame ▸ … ▸ handler
//! ```

mod masks;
mod record;
mod series;
mod span;
mod watch;

pub use masks::Masks;
pub(super) use masks::tell_body;
pub(super) use record::RequestLog;
pub(super) use series::RoutePath;
pub(super) use span::RequestSpan;
pub(super) use watch::watch;

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
pub use masks::tell_body;
pub use record::RequestLog;
pub use series::RoutePath;
pub use span::RequestSpan;
pub use watch::watch;

//! The only reader of the wall clock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

/// The source of the current time. Tests can set it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the one reading of the clock")]
    pub fn system() -> Self {
        Self(Arc::new(Utc::now))
    }

    /// Any other source.
    pub fn new(read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The time in whole microseconds, the database's precision, so that every response shows the same time.
    pub fn now(&self) -> DateTime<Utc> {
        let now = (self.0)();
        DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

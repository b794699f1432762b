//! The one reader of the wall clock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Where everything that needs the time gets it, so that tests can set it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the one reading of the clock")]
    pub fn system() -> Self {
        Self(Arc::new(Utc::now))
    }

    /// Any other.
    pub fn new(read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The time in whole microseconds: what the database keeps, so that an answer shows the same
    /// time as every later one.
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

//! What retention may have removed.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use humantime::format_duration;

use super::Pass;

/// Shortest retention of audit entries: a typing error must not empty the trail.
pub const RETENTION_MIN: Duration = Duration::from_hours(1);

/// How far the clock of a verification may be behind the clock of retention.
const CLOCK_DIFFERENCE_MAX: TimeDelta = TimeDelta::minutes(1);

/// The age from which entries may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionRule {
    /// The setting; unset if it is unknown. Then the shortest one that the service accepts applies.
    configured: Option<Duration>,
    expired_before: DateTime<Utc>,
}

impl RetentionRule {
    pub fn new(now: DateTime<Utc>, configured: Option<Duration>) -> Self {
        let retention = configured.unwrap_or_default().max(RETENTION_MIN);
        let retention = TimeDelta::from_std(retention).unwrap_or(TimeDelta::MAX);
        let before = now
            .checked_add_signed(CLOCK_DIFFERENCE_MAX)
            .and_then(|now| now.checked_sub_signed(retention));
        Self {
            configured,
            expired_before: before.unwrap_or(DateTime::<Utc>::MIN_UTC),
        }
    }

    /// Whether every entry up to the end of the pass has expired.
    pub(crate) fn has_expired(&self, pass: &Pass) -> bool {
        pass.newest_at < self.expired_before
    }
}

impl fmt::Display for RetentionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = format_duration(self.configured.unwrap_or(RETENTION_MIN));
        if self.configured.is_some() {
            write!(f, "audit.retention, {age}")
        } else {
            write!(f, "{age}, because audit.retention is not set here")
        }
    }
}

//! How often keys are looked for, and how long that may take.

use std::time::Duration;

/// How often keys are looked for, and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two fetches while all is well, more or less by a tenth, so that instances do not
    /// all ask at once.
    pub period: Duration,
    /// Until a fetch for a token of an unknown key, at the least, since whatever fetch was the last:
    /// however many such tokens come.
    pub cooldown: Duration,
    /// Until the first new try when a fetch has failed; twice as long for each further one.
    pub retry_min: Duration,
    /// Until a new try at the most, however often it has failed.
    pub retry_max: Duration,
    /// Between two looks at a file.
    pub file_period: Duration,
    /// For a connection.
    pub connect: Duration,
    /// For a whole fetch.
    pub fetch: Duration,
    /// How long a request waits for a fetch; then it is answered by the keys that are known.
    pub wait: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            period: Duration::from_hours(1),
            cooldown: Duration::from_secs(30),
            retry_min: Duration::from_secs(30),
            retry_max: Duration::from_mins(5),
            file_period: Duration::from_secs(5),
            connect: Duration::from_secs(3),
            fetch: Duration::from_secs(10),
            wait: Duration::from_secs(3),
        }
    }
}

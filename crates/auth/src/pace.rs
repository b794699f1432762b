//! How often keys are fetched and read, and the timeouts for it.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two fetches, varied by up to a tenth, so that instances do not all fetch at the same time.
    pub period: Duration,
    /// Minimum time between the last fetch and one for a token with an unknown key, whatever the number of such
    /// tokens.
    pub cooldown: Duration,
    /// Until the first retry of a failed fetch; doubles with each further one.
    pub retry_min: Duration,
    /// Longest time until a retry.
    pub retry_max: Duration,
    /// Between two reads of a file.
    pub file_period: Duration,
    /// Timeout of a connection.
    pub connect: Duration,
    /// Timeout of a complete fetch.
    pub fetch: Duration,
    /// How long a request waits for a fetch; then the known keys decide.
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

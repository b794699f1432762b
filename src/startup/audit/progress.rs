//! Progress on standard error, for people.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::app::trail::TrailProgress;
use crate::domain::moment;
use hyperfleet_server_kit::program::print_to_stderr;

/// Least time between two lines, and before the first one.
const PERIOD: Duration = Duration::from_secs(2);

/// Prints how much was read, at most a line every two seconds.
pub(super) struct ProgressOfTrail {
    verb: &'static str,
    is_shown: bool,
    shown: Mutex<Instant>,
}

impl ProgressOfTrail {
    pub(super) fn new(verb: &'static str, is_shown: bool) -> Self {
        Self {
            verb,
            is_shown,
            shown: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn show(&self, progress: TrailProgress) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_shown && shown.elapsed() >= PERIOD {
            *shown = Instant::now();
            print_to_stderr(&line(self.verb, progress));
        }
    }
}

fn line(verb: &str, progress: TrailProgress) -> String {
    let TrailProgress { entries, at } = progress;
    format!(
        "{verb} {entries} entries, up to {}",
        moment::whole_seconds(at)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is() {
        let progress = TrailProgress {
            entries: 12_000,
            at: "2026-01-01T10:00:00.5Z".parse().unwrap(),
        };
        let expected = "Verified 12000 entries, up to 2026-01-01T10:00:00Z";
        assert_eq!(line("Verified", progress), expected);
    }
}

//! Progress on standard error, for people.

use std::time::{Duration, Instant};

use hyperfleet_audit::Line;

use hyperfleet_domain::moment;
use hyperfleet_server_kit::program::print_to_stderr;

/// Least time between two lines, and before the first one.
const PERIOD: Duration = Duration::from_secs(2);

/// Counts entries, and prints how far it is.
pub(super) struct TrailProgress {
    verb: &'static str,
    is_printed: bool,
    printed: Instant,
    entries: u64,
}

impl TrailProgress {
    pub(super) fn new(verb: &'static str, is_printed: bool) -> Self {
        Self {
            verb,
            is_printed,
            printed: Instant::now(),
            entries: 0,
        }
    }

    pub(super) fn count(&mut self, line: &Line) {
        let Line::Entry(entry) = line else {
            return;
        };
        self.entries += 1;
        if self.is_printed && self.printed.elapsed() >= PERIOD {
            self.printed = Instant::now();
            let (verb, entries) = (self.verb, self.entries);
            let at = moment::rfc3339_seconds(entry.at);
            print_to_stderr(&format!("{verb} {entries} entries, up to {at}"));
        }
    }
}

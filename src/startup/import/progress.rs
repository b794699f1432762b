//! Progress on standard error, for people.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::app::import::{ImportProgress, ImportStep};
use hyperfleet_server_kit::program::print_to_stderr;

/// Least time between two lines of a step.
const PERIOD: Duration = Duration::from_secs(2);

/// Prints the progress of the import, at most a line every two seconds.
pub(super) struct ProgressLines {
    is_shown: bool,
    state: Mutex<State>,
}

struct State {
    step: Option<ImportStep>,
    began: Instant,
    shown: Instant,
}

impl ProgressLines {
    pub(super) fn new(is_shown: bool) -> Self {
        let now = Instant::now();
        Self {
            is_shown,
            state: Mutex::new(State {
                step: None,
                began: now,
                shown: now,
            }),
        }
    }

    pub(super) fn show(&self, progress: ImportProgress) {
        if !self.is_shown {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_first = state.step != Some(progress.step);
        if is_first {
            state.step = Some(progress.step);
            state.began = now;
        }
        let is_last = progress.done == progress.total;
        if is_first || is_last || now - state.shown >= PERIOD {
            state.shown = now;
            print_to_stderr(&line(progress, now - state.began));
        }
    }
}

fn line(progress: ImportProgress, elapsed: Duration) -> String {
    let ImportProgress { step, done, total } = progress;
    let what = match step {
        ImportStep::Plan => return "Listing both databases".to_owned(),
        ImportStep::Remove => "Removed",
        ImportStep::Bring => "Imported",
        ImportStep::Link => "Linked",
        ImportStep::Verify => "Compared",
    };
    let percent = done * 100 / total.max(1);
    let seconds = elapsed.as_secs();
    format!("{what} {done} of {total} resources, {percent} %, {seconds} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_a_step_is() {
        let line = |step, done, total| {
            let progress = ImportProgress { step, done, total };
            line(progress, Duration::from_millis(61_500))
        };
        assert_eq!(line(ImportStep::Plan, 0, 0), "Listing both databases");
        assert_eq!(
            line(ImportStep::Bring, 500, 2000),
            "Imported 500 of 2000 resources, 25 %, 61 s"
        );
        assert_eq!(
            line(ImportStep::Verify, 0, 0),
            "Compared 0 of 0 resources, 0 %, 61 s"
        );
    }
}

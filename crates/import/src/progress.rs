//! The progress of a pass, on standard error.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use strum::IntoStaticStr;

use hyperfleet_server_kit::program::print_to_stderr;

/// Least time between two lines of a step.
const PERIOD: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum ImportStep {
    #[strum(serialize = "Listed")]
    List,
    #[strum(serialize = "Removed")]
    Remove,
    #[strum(serialize = "Imported")]
    Import,
    #[strum(serialize = "Linked")]
    Link,
    #[strum(serialize = "Compared")]
    Compare,
}

/// The progress of a step, in resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    pub step: ImportStep,
    pub done: usize,
    pub total: usize,
}

/// Prints the progress of a pass: at most a line every two seconds, and the first and the last of each step.
#[derive(Default)]
pub struct ProgressLines(Mutex<Option<(ImportStep, Instant)>>);

impl ProgressLines {
    pub fn print(&self, progress: ImportProgress) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|(step, at)| step != progress.step || at.elapsed() >= PERIOD);
        if is_due || progress.done == progress.total {
            *last = Some((progress.step, Instant::now()));
            print_to_stderr(&line(progress));
        }
    }
}

fn line(progress: ImportProgress) -> String {
    let ImportProgress { step, done, total } = progress;
    let step: &str = step.into();
    let percent = done * 100 / total.max(1);
    format!("{step} {done} of {total} resources, {percent} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_a_step_is() {
        for (step, done, total, expected) in [
            (
                ImportStep::Import,
                500,
                2000,
                "Imported 500 of 2000 resources, 25 %",
            ),
            (ImportStep::Compare, 0, 0, "Compared 0 of 0 resources, 0 %"),
        ] {
            let progress = ImportProgress { step, done, total };
            assert_eq!(line(progress), expected);
        }
    }
}

//! Panics are told in the log, in one line, and counted.

use std::panic::{self, PanicHookInfo};

use crate::domain::mapping;

/// From now on. Panics of the rules' interpreter are part of its work: the rule fails, and that is
/// what is told.
pub(super) fn tell() {
    panic::set_hook(Box::new(|panic| {
        if !mapping::is_evaluating() {
            tell_one(panic);
        }
    }));
}

fn tell_one(panic: &PanicHookInfo<'_>) {
    metrics::counter!("hyperfleet_api_panics_total").increment(1);
    let location = panic.location().map(ToString::to_string);
    let cause = panic.payload_as_str().unwrap_or("of no text");
    let thread = std::thread::current();
    tracing::error!(
        cause,
        location = location.unwrap_or_default(),
        thread = thread.name().unwrap_or_default(),
        "a panic: this is a defect"
    );
}

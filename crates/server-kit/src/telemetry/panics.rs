//! Panics are told in the log, in one line, and counted.

use std::panic::{self, PanicHookInfo};

/// From now on, but for expected ones.
pub(super) fn tell(is_expected: fn() -> bool) {
    panic::set_hook(Box::new(move |panic| {
        if !is_expected() {
            tell_one(panic);
            // It may be the last thing that the process does.
            super::flush();
        }
    }));
}

/// Says where it happened. What it says of itself is told only if that stands in the source word for
/// word: a text that is put together may hold what a client sent, a token for one.
fn tell_one(panic: &PanicHookInfo<'_>) {
    metrics::counter!("hyperfleet_api_panics_total").increment(1);
    let cause = panic.payload().downcast_ref::<&'static str>();
    let location = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    tracing::error!(
        cause = cause.copied(),
        location = location.unwrap_or_default(),
        thread = thread.name().unwrap_or_default(),
        "a panic: this is a defect"
    );
}

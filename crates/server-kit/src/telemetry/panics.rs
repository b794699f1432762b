//! Logs and counts panics, one line each.

use std::panic::{self, PanicHookInfo};

/// Installs the hook, which ignores expected panics.
pub(super) fn install_hook(is_expected: fn() -> bool) {
    panic::set_hook(Box::new(move |panic| {
        if !is_expected() {
            log_panic(panic);
            // It may be the last action of the process.
            super::flush();
        }
    }));
}

/// Logs where it happened. Its message is logged only if it is a literal of the source: a formatted one may
/// contain a client's data, such as a token.
fn log_panic(panic: &PanicHookInfo<'_>) {
    metrics::counter!("hyperfleet_api_panics_total").increment(1);
    let cause = panic.payload().downcast_ref::<&'static str>();
    let location = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    tracing::error!(
        cause = cause.copied(),
        location = location.unwrap_or_default(),
        thread = thread.name().unwrap_or_default(),
        "panic: this is a defect"
    );
}

//! Panics are told in the log, in one line, and counted.

use std::panic::{self, PanicHookInfo};

use crate::domain::mapping;

/// From now on. Panics of the rules' interpreter are part of its work: the rule fails, and that is
/// what is told.
pub(super) fn tell() {
    panic::set_hook(Box::new(|panic| {
        if !mapping::is_evaluating() {
            tell_one(panic);
            // It may be the last thing that the process does.
            super::flush();
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::*;

    /// Keeps the fields of events.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            event.record(&mut self.clone());
        }
    }

    impl Visit for Kept {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            let text = format!("{field}={value:?}");
            self.0.lock().unwrap().push(text);
        }
    }

    #[test]
    fn a_panic_is_told_with_its_place_and_its_text() {
        let kept = Kept::default();
        let before = Arc::new(panic::take_hook());
        let (here, others) = (std::thread::current().id(), Arc::clone(&before));
        // Tests that fail meanwhile say so as ever.
        panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == here {
                tell_one(panic);
            } else {
                others(panic);
            }
        }));
        let subscriber = tracing_subscriber::registry().with(kept.clone());
        let result = tracing::subscriber::with_default(subscriber, || {
            panic::catch_unwind(|| panic!("number {}", 7))
        });
        panic::set_hook(Box::new(move |panic| before(panic)));
        assert!(result.is_err());
        let told = kept.0.lock().unwrap().join(" ");
        assert!(told.contains("cause=\"number 7\""), "{told}");
        assert!(told.contains("telemetry/panics.rs:"), "{told}");
    }
}

//! Supervises tasks. A panic is a defect; ending the process for it would turn a small defect into an outage of every
//! instance, so it is logged and the task restarts.

use std::future::Future;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

/// Pause before a restart: an immediate defect must not fill the log.
const PAUSE: Duration = Duration::from_secs(5);

/// Runs a task that never ends, and restarts it like [`supervise_until_done`].
pub async fn supervise<F>(task: &'static str, mut start: impl FnMut() -> F)
where
    F: Future<Output = ()>,
{
    let endless = || {
        let run = start();
        async {
            run.await;
            ControlFlow::Continue(())
        }
    };
    supervise_until_done(task, endless).await;
}

/// Runs a task until it breaks, and restarts it after a pause whenever it panics or ends otherwise; each restart is
/// logged at `error` with the task's name. Dropping the future ends the task.
///
/// `start` is called for each run: runs share only what their closure shares.
pub async fn supervise_until_done<F>(task: &'static str, mut start: impl FnMut() -> F)
where
    F: Future<Output = ControlFlow<()>>,
{
    loop {
        let run = AssertUnwindSafe(async { start().await }).catch_unwind();
        let end = match run.await {
            Ok(ControlFlow::Break(())) => return,
            Ok(ControlFlow::Continue(())) => "returned",
            // The panic itself is logged with its location.
            Err(_) => "panicked",
        };
        let pause_seconds = PAUSE.as_secs_f64();
        tracing::error!(task, end, pause_seconds, "task ended: restarting");
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::*;

    /// Captures the fields of events.
    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Captured {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            event.record(&mut self.clone());
        }
    }

    impl Visit for Captured {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.lock().unwrap().push(format!("{field}={value:?}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_or_ends_is_logged_and_restarts() {
        let captured = Captured::default();
        let subscriber = tracing_subscriber::registry().with(captured.clone());
        let _guard = tracing::subscriber::set_default(subscriber);
        let mut runs = 0;
        let tending = supervise_until_done("count", move || {
            runs += 1;
            async move {
                match runs {
                    1 => panic!("on purpose"),
                    2 => ControlFlow::Continue(()),
                    // In the middle of the work, as most do.
                    3 => {
                        tokio::task::yield_now().await;
                        panic!("on purpose")
                    }
                    _ => ControlFlow::Break(()),
                }
            }
        });
        tending.await;
        let logged = captured.0.lock().unwrap().join(" ");
        for (part, count) in [
            ("message=task ended: restarting", 3),
            ("end=\"panicked\"", 2),
            ("end=\"returned\"", 1),
            ("task=\"count\"", 3),
        ] {
            assert_eq!(logged.matches(part).count(), count, "{part}: {logged}");
        }
    }
}

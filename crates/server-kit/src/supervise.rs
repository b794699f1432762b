//! Supervises tasks that never end. A panic is a defect; ending the process for it would turn a small defect
//! into an outage of every instance, so it is logged and the task restarts.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

/// Pause before a restart: an immediate defect must not fill the log.
pub const PAUSE: Duration = Duration::from_secs(5);

/// Runs a task, and restarts it after a pause whenever it panics or ends; each restart is logged at
/// `error` with the task's name. Dropping the future ends the task.
///
/// `start` is called for each run: runs share only what their closure shares.
pub async fn supervise<F>(task: &'static str, pause: Duration, mut start: impl FnMut() -> F)
where
    F: Future<Output = ()>,
{
    loop {
        let run = AssertUnwindSafe(async { start().await }).catch_unwind();
        let end = match run.await {
            Ok(()) => "returned",
            // The panic itself is logged with its location.
            Err(_) => "panicked",
        };
        let pause_seconds = pause.as_secs_f64();
        tracing::error!(task, end, pause_seconds, "task ended: restarting");
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::oneshot;
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

    #[tokio::test]
    async fn a_task_that_panics_or_ends_is_logged_and_restarts() {
        let captured = Captured::default();
        let subscriber = tracing_subscriber::registry().with(captured.clone());
        let _guard = tracing::subscriber::set_default(subscriber);
        let (arrive, arrived) = oneshot::channel();
        let (mut runs, mut arrive) = (0, Some(arrive));
        let tending = supervise("count", Duration::ZERO, move || {
            runs += 1;
            let arrive = if runs == 4 { arrive.take() } else { None };
            async move {
                match runs {
                    1 => panic!("on purpose"),
                    2 => {}
                    // In the middle of the work, as most do.
                    3 => {
                        tokio::task::yield_now().await;
                        panic!("on purpose")
                    }
                    _ => {
                        arrive.unwrap().send(()).unwrap();
                        std::future::pending::<()>().await;
                    }
                }
            }
        });
        tokio::select! {
            () = tending => unreachable!("it never ends"),
            arrived = arrived => arrived.unwrap(),
        }
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

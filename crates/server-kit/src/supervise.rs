//! Supervises tasks. A panic is a defect; ending the process for it would turn a small defect into an outage of every
//! instance, so it is logged and the task restarts.

use std::future::Future;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

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

/// A supervised task that ends only on request. Dropping it aborts the task.
#[derive(Debug)]
pub struct StoppableTask<T> {
    stop: watch::Sender<Option<T>>,
    task: JoinSet<()>,
}

impl<T: Clone + Send + Sync + 'static> StoppableTask<T> {
    /// Starts a task, and restarts it until it is stopped. `start` is called for each run, with a future that ends when the
    /// task must stop, and says how.
    pub fn start<F>(
        task: &'static str,
        mut start: impl FnMut(BoxFuture<'static, T>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = watch::Sender::new(None);
        let stopping = stop.subscribe();
        let supervised = supervise_until_done(task, move || {
            let run = Box::pin(start(ordered(stopping.clone()).boxed()));
            let stopping = stopping.clone();
            async move {
                run.await;
                match *stopping.borrow() {
                    Some(_) => ControlFlow::Break(()),
                    None => ControlFlow::Continue(()),
                }
            }
        });
        let task = JoinSet::from_iter([supervised]);
        Self { stop, task }
    }

    /// Stops the task in a way, and waits for its end.
    pub async fn stop(mut self, how: T) {
        self.stop.send_replace(Some(how));
        self.task.join_next().await;
    }
}

/// The order to stop.
async fn ordered<T: Clone>(mut stopping: watch::Receiver<Option<T>>) -> T {
    let ordered = stopping.wait_for(Option::is_some).await;
    match ordered.ok().and_then(|how| how.clone()) {
        Some(how) => how,
        // The sender is dropped together with the task.
        None => std::future::pending().await,
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
    async fn a_stoppable_task_restarts_until_it_is_stopped() {
        let (runs, seen) = (watch::Sender::new(0), Arc::new(Mutex::new(None)));
        let (mut count, stopped) = (runs.subscribe(), Arc::clone(&seen));
        let task = StoppableTask::start("count", move |stop| {
            let (runs, stopped) = (runs.clone(), Arc::clone(&stopped));
            async move {
                runs.send_modify(|runs| *runs += 1);
                assert!(*runs.borrow() > 1, "on purpose");
                *stopped.lock().unwrap() = Some(stop.await);
            }
        });
        count.wait_for(|runs| *runs == 2).await.unwrap();
        task.stop("gently").await;
        assert_eq!(*seen.lock().unwrap(), Some("gently"));
        assert_eq!(*count.borrow(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stoppable_task_ends_with_its_handle() {
        let (runs, mut ended) = watch::channel(());
        let task = StoppableTask::<()>::start("wait", move |stop| {
            let runs = runs.clone();
            async move {
                stop.await;
                drop(runs);
            }
        });
        drop(task);
        assert!(ended.changed().await.is_err());
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

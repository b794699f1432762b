//! Lists the resources that need work, again and again.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Shared, jitter};
use crate::api::Error;
use crate::resource::Resource;
use crate::telemetry;

/// Resources that any adapter may have to work on.
const NOT_RECONCILED: &str = "status.conditions.Reconciled='False'";
/// How long to wait before the API is asked again that could not be.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Some resources of a kind.
#[derive(Debug)]
pub(super) struct Listed {
    /// The position of the kind in the settings.
    pub(super) kind: usize,
    pub(super) items: Vec<Resource>,
    /// The number of the sweep that was last begun.
    pub(super) sweep: u64,
    /// Whether it is part of that; otherwise of what is not reconciled.
    pub(super) is_sweep: bool,
    /// Whether it is the last part.
    pub(super) is_end: bool,
}

/// Lists a kind: what is not reconciled, everything, then what is not reconciled, again and again. Ends when nobody takes
/// it any more.
pub(super) async fn keep<A>(shared: &Shared<A>, kind: usize, tell: &mpsc::Sender<Listed>) {
    let settings = &shared.settings;
    let (mut sweep, mut sweep_at) = (0, Instant::now());
    // After a start what has changed comes before everything else.
    let mut has_changes = false;
    let (mut pause, mut is_told) = (PAUSE, false);
    while !tell.is_closed() {
        let is_sweep = has_changes && Instant::now() >= sweep_at;
        if is_sweep {
            sweep += 1;
        }
        let begin = Listed {
            kind,
            items: Vec::new(),
            sweep,
            is_sweep,
            is_end: false,
        };
        let listed = list(shared, &begin, tell).await;
        let what = if is_sweep { "everything" } else { "changes" };
        telemetry::listed(&settings.kinds[kind].plural, what, listed.is_ok());
        match listed {
            Ok(()) => {
                if std::mem::take(&mut is_told) {
                    tracing::info!(kind = settings.kinds[kind].plural, "the API answers again");
                }
                pause = PAUSE;
                if !std::mem::replace(&mut has_changes, true) {
                    continue;
                }
                if is_sweep {
                    // Replicas and kinds need not all come at once.
                    sweep_at =
                        Instant::now() + settings.sweep_interval.mul_f64(0.9 + jitter() / 5.0);
                }
                sleep(settings.poll_interval).await;
            }
            Err(error) => {
                let asked = error.again_after().unwrap_or_default();
                if !std::mem::replace(&mut is_told, true) {
                    let (error, kind) = (
                        format!("{:#}", anyhow::Error::from(error)),
                        &settings.kinds[kind].plural,
                    );
                    tracing::warn!(error, kind, "resources cannot be listed");
                }
                sleep(asked.max(pause)).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

async fn list<A>(
    shared: &Shared<A>,
    begin: &Listed,
    tell: &mpsc::Sender<Listed>,
) -> Result<(), Error> {
    let kind = &shared.settings.kinds[begin.kind];
    let search = match (&kind.search, begin.is_sweep) {
        (search, true) => search.clone(),
        (None, false) => Some(NOT_RECONCILED.to_owned()),
        (Some(search), false) => Some(format!("{NOT_RECONCILED} and ({search})")),
    };
    let mut from = None;
    loop {
        let page = shared
            .api
            .list(&kind.plural, search.as_deref(), from.as_ref())
            .await?;
        from = page.next;
        let some = Listed {
            items: page.items,
            is_end: from.is_none(),
            ..*begin
        };
        // Nobody takes it when the adapter ends.
        if tell.send(some).await.is_err() || from.is_none() {
            return Ok(());
        }
    }
}

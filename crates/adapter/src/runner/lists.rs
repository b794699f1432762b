//! Lists the resources that need work, periodically.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Shared, jitter};
use crate::api::Error;
use crate::resource::Resource;
use crate::telemetry;

/// Resources that any adapter may have to work on.
const NOT_RECONCILED: &str = "status.conditions.Reconciled='False'";
/// Pause after a failed request.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A part of a list.
#[derive(Debug)]
pub(super) struct Listed {
    /// Position of the kind in the settings.
    pub(super) kind: usize,
    pub(super) items: Vec<Resource>,
    /// Number of the current sweep.
    pub(super) sweep: u64,
    /// Whether it belongs to the sweep, or to a list of changes.
    pub(super) is_sweep: bool,
    /// Whether it is the last part.
    pub(super) is_end: bool,
}

/// Lists a kind for ever: changes, then at longer intervals everything. Ends when the receiver is gone.
pub(super) async fn list_forever<A>(
    shared: &Shared<A>,
    kind: usize,
    sender: &mpsc::Sender<Listed>,
) {
    let settings = &shared.settings;
    let (mut sweep, mut sweep_at) = (0, Instant::now());
    // After a start changes come before everything else.
    let mut has_changes = false;
    let (mut pause, mut is_told) = (PAUSE, false);
    while !sender.is_closed() {
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
        let listed = list(shared, &begin, sender).await;
        let what = if is_sweep { "everything" } else { "changes" };
        telemetry::listed(&settings.kinds[kind].plural, what, listed.is_ok());
        match listed {
            Ok(()) => {
                if std::mem::take(&mut is_told) {
                    tracing::info!(kind = settings.kinds[kind].plural, "API reachable again");
                }
                pause = PAUSE;
                if !std::mem::replace(&mut has_changes, true) {
                    continue;
                }
                if is_sweep {
                    // Spreads replicas and kinds over time.
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
                    tracing::warn!(error, kind, "listing resources failed: retrying");
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
    sender: &mpsc::Sender<Listed>,
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
        // The receiver is gone when the adapter stops.
        if sender.send(some).await.is_err() || from.is_none() {
            return Ok(());
        }
    }
}

//! An engine that does not lead: it waits until no engine leads, and campaigns.

use std::time::Duration;

use tokio::time::Instant;

use super::outage::Part;
use super::term::Term;
use super::{Engine, Stopping, VERSION, telemetry};
use crate::keys::KeyStore;
use crate::registry::{Acquired, EngineGate, Error, Key, Leader, Snapshot};

/// Why an engine does not lead. Changes are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StandbyReason {
    /// Another engine leads, since this epoch.
    Behind { leader: Leader, epoch: i64 },
    /// The leader's key is unreadable.
    BehindUnreadable,
    /// A newer engine has decided before. `None`: its version is unreadable.
    Closed(Option<u64>),
}

/// Why this engine must not lead, from the keys below `engine/`.
fn standby_reason(snapshot: &Snapshot) -> Option<StandbyReason> {
    if snapshot.unreadable.contains_key(&Key::EngineVersion) {
        return Some(StandbyReason::Closed(None));
    }
    let newest = snapshot.engine_version.as_ref().map(|it| it.value.version);
    if newest.is_some_and(|version| version > VERSION) {
        return Some(StandbyReason::Closed(newest));
    }
    if snapshot.unreadable.contains_key(&Key::Leader) {
        return Some(StandbyReason::BehindUnreadable);
    }
    let leader = snapshot.leader.as_ref()?;
    (leader.value.version >= VERSION).then(|| StandbyReason::Behind {
        leader: leader.value.clone(),
        epoch: leader.created,
    })
}

impl<S: KeyStore> Engine<S> {
    /// Waits until it leads; `None` if it must stop.
    pub(super) async fn stand_by(
        &self,
        stopping: &Stopping,
        logged: &mut Option<StandbyReason>,
    ) -> Result<Option<Term>, Error> {
        let mirror = &self.fleet.mirror;
        let mut progress = mirror.subscribe();
        loop {
            self.mirror_reaches(0, stopping).await?;
            if stopping.is_due() {
                return Ok(None);
            }
            progress.borrow_and_update();
            match mirror.read(|picture| standby_reason(&picture.snapshot)) {
                None => {
                    if let Some(term) = self.campaign().await? {
                        *logged = None;
                        self.outages.is_well(Part::Leadership);
                        return Ok(Some(term));
                    }
                }
                reason => {
                    self.outages.is_well(Part::Leadership);
                    if *logged != reason {
                        reason.as_ref().inspect(|s| log_reason(logged.as_ref(), s));
                        *logged = reason;
                    }
                }
            }
            tokio::select! {
                _ = progress.changed() => {}
                () = stopping.due() => {}
            }
        }
    }

    /// Campaigns. `None` if another engine was faster: the mirror will show which.
    async fn campaign(&self) -> Result<Option<Term>, Error> {
        // A write in progress is completed: otherwise this engine could lead without knowing.
        if let EngineGate::Closed { .. } = self.fleet.registry.pass_gate(VERSION).await? {
            return Ok(None);
        }
        let leader = Leader {
            id: self.settings.id.clone(),
            version: VERSION,
        };
        let asked_at = Instant::now();
        let seconds = self.settings.lease_seconds;
        match self
            .fleet
            .registry
            .acquire_leadership(&leader, seconds)
            .await
        {
            Ok(Acquired::Leading(leading)) => {
                tracing::info!(epoch = leading.epoch, "Engine leadership acquired");
                let since = self.clock.as_ref().map(|clock| clock.now().timestamp());
                telemetry::leads(leading.epoch, since);
                Ok(Some(Term::start(self, leading, asked_at)))
            }
            // Another engine led in between and is gone again.
            Ok(Acquired::Standby(_)) | Err(Error::Deposed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_secs(self.settings.lease_seconds.into())
    }
}

/// In the older fleet's words where it had some.
fn log_reason(before: Option<&StandbyReason>, now: &StandbyReason) {
    match (before, now) {
        (
            Some(StandbyReason::Behind { leader: old, .. }),
            StandbyReason::Behind { leader, epoch },
        ) if old.id != leader.id => {
            tracing::info!(
                epoch,
                "Engine leadership changed from {} to {}",
                old.id,
                leader.id
            );
        }
        (_, StandbyReason::Behind { leader, epoch }) => {
            tracing::info!(epoch, "Engine leader is {}", leader.id);
        }
        (_, StandbyReason::BehindUnreadable) => {
            tracing::warn!("leader record unreadable: standing by");
        }
        (_, StandbyReason::Closed(version)) => {
            tracing::warn!(
                version = version.unwrap_or_default(),
                ours = VERSION,
                "a newer engine has led before: standing by until engine/version is reset"
            );
        }
    }
}

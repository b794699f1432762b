//! An engine that does not lead: it waits until no engine leads, and campaigns.

use std::time::Duration;

use tokio::time::Instant;

use super::outage::Part;
use super::term::Term;
use super::{Engine, Stopping, VERSION, telemetry};
use crate::keys::KeyStore;
use crate::registry::{Acquired, Error, Gate, Key, Leader, Scope, Snapshot, Told};

/// Why an engine does not lead. Changes are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Another engine leads, since this epoch.
    Behind { leader: Leader, epoch: i64 },
    /// The leader's key is unreadable.
    BehindForeign,
    /// A newer engine has decided before. `None`: its version is unreadable.
    Closed(Option<u64>),
}

/// Why this engine must not lead, from the keys below `engine/`.
fn standing(known: &Snapshot) -> Option<Standing> {
    if known.foreign.contains_key(&Key::EngineVersion) {
        return Some(Standing::Closed(None));
    }
    let newest = known.engine_version.as_ref().map(|it| it.value.version);
    if newest.is_some_and(|version| version > VERSION) {
        return Some(Standing::Closed(newest));
    }
    if known.foreign.contains_key(&Key::Leader) {
        return Some(Standing::BehindForeign);
    }
    let leader = known.leader.as_ref()?;
    (leader.value.version >= VERSION).then(|| Standing::Behind {
        leader: leader.value.clone(),
        epoch: leader.created,
    })
}

impl<S: KeyStore> Engine<S> {
    /// Waits until it leads; `None` if it must stop.
    pub(super) async fn stand_by(
        &self,
        stopping: &Stopping,
        told: &mut Option<Standing>,
    ) -> Result<Option<Term>, Error> {
        loop {
            let (found, position) = self.fleet.registry.list(&Scope::Leader).await?;
            let mut known = Snapshot::of(position.revision, found);
            let mut watch = self.fleet.registry.watch(&Scope::Leader, position)?;
            // Checked again after a while, in case the watch is broken without an error.
            let look_anew = Instant::now() + self.lease();
            loop {
                if stopping.is_due() {
                    return Ok(None);
                }
                match standing(&known) {
                    None => {
                        if let Some(term) = self.campaign().await? {
                            *told = None;
                            self.outages.is_well(Part::Leadership);
                            return Ok(Some(term));
                        }
                    }
                    standing => {
                        self.outages.is_well(Part::Leadership);
                        if *told != standing {
                            standing.as_ref().inspect(|s| tell(told.as_ref(), s));
                            *told = standing;
                        }
                    }
                }
                tokio::select! {
                    news = watch.next() => match news? {
                        Told::Changes { changes, .. } => known.extend(changes),
                        Told::Relisted { revision, found } => known = Snapshot::of(revision, found),
                    },
                    () = stopping.due() => return Ok(None),
                    () = tokio::time::sleep_until(look_anew) => break,
                }
            }
        }
    }

    /// Campaigns. `None` if another engine was faster: the watch shows which.
    async fn campaign(&self) -> Result<Option<Term>, Error> {
        // A write in progress is completed: otherwise this engine could lead without knowing.
        if let Gate::Closed { .. } = self.fleet.registry.pass_gate(VERSION).await? {
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
                Ok(Some(Term::keep(self, leading, asked_at)))
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
fn tell(before: Option<&Standing>, now: &Standing) {
    match (before, now) {
        (Some(Standing::Behind { leader: old, .. }), Standing::Behind { leader, epoch })
            if old.id != leader.id =>
        {
            tracing::info!(
                epoch,
                "Engine leadership changed from {} to {}",
                old.id,
                leader.id
            );
        }
        (_, Standing::Behind { leader, epoch }) => {
            tracing::info!(epoch, "Engine leader is {}", leader.id);
        }
        (_, Standing::BehindForeign) => {
            tracing::warn!("leader record unreadable: standing by");
        }
        (_, Standing::Closed(version)) => {
            tracing::warn!(
                version = version.unwrap_or_default(),
                ours = VERSION,
                "a newer engine has led before: standing by until engine/version is reset"
            );
        }
    }
}

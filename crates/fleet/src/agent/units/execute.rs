//! Carries out each task for one unit.

use std::io;

use super::{OnDisk, Units};
use crate::agent::disk::UnitMemory;
use crate::agent::duties::{Files, Orders};
use crate::agent::systemd::{Error, Origin, Systemd, SystemdState};
use hyperfleet_fleet_model::unit::DesiredState;

/// Why a task was not completed.
pub(super) enum Undone {
    Stopping,
    Failed(String),
    /// systemd is unreachable: nothing more can be done now.
    Unreachable(Error),
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        match error {
            Error::Unreachable { .. } => Self::Unreachable(error),
            Error::NoSuchUnit { .. } | Error::Refused { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Undone {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("write a unit file: {error}"))
    }
}

impl Units {
    pub(super) async fn unload(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
    ) -> Result<(), Undone> {
        // A unit of this name that fleet did not write is left unchanged.
        if let Some(from) = self.foreign_unit_file(systemd, unit).await? {
            self.leave_to_host(systemd, unit, &from).await?;
        } else {
            self.is_about_to_stop(unit);
            systemd.stop(unit).await?;
            if !state_of(systemd, unit).await?.has_stopped() {
                return Err(Undone::Stopping);
            }
            // systemd knows the unit from here on. Stored first, because the process may end in between.
            self.change(unit, |known| known.state = DesiredState::Inactive);
            self.memory.needs_reload = true;
            self.remember();
            systemd.disable(unit).await?;
            systemd.reset_failed(unit).await?;
        }
        self.drop_file(unit)?;
        Ok(())
    }

    /// Leaves a unit to the machine, which has its own file of that name now. A process that fleet has started runs on: it
    /// is reported until an operator stops or starts the unit there.
    async fn leave_to_host(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
        from: &str,
    ) -> Result<(), Undone> {
        let known = self.memory.units.get(unit);
        let may_run =
            known.is_some_and(|known| known.may_run || known.state == DesiredState::Launched);
        if !may_run || state_of(systemd, unit).await?.has_stopped() {
            return Ok(());
        }
        let invocation = systemd.invocation(unit).await?;
        let first = self.left_to_host.entry(unit.to_owned());
        if *first.or_insert_with(|| invocation.clone()) != invocation {
            return Ok(());
        }
        Err(Undone::Failed(format!(
            "this machine has a unit {unit} that fleet did not write, from {from}: a process that fleet may have started \
             runs on until the unit is stopped or restarted on the machine"
        )))
    }

    pub(super) async fn load(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
        orders: &Orders,
        files: &Files,
    ) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        // Units without a known file are pinned.
        let file = files.get(orders.hash(unit));
        let file = file.ok_or_else(|| Undone::Failed("its file is not known".to_owned()))?;
        self.disk.write(unit, &file.text())?;
        let before = self.memory.units.get(unit);
        let may_run =
            before.is_some_and(|known| known.may_run || known.state == DesiredState::Launched);
        let known = UnitMemory::file_only(may_run);
        self.memory.units.insert(unit.to_owned(), known);
        let on_disk = OnDisk::of(unit, file);
        self.on_disk.insert(unit.to_owned(), Some(on_disk));
        self.memory.needs_reload = true;
        self.unread.insert(unit.to_owned());
        let path = self.disk.path(unit);
        if let Err(Error::Refused { .. }) = systemd.link(&path).await {
            // systemd does not know the unit, so a dangling link is in the way, such as one into an earlier
            // units_directory.
            systemd.disable(unit).await?;
            systemd.link(&path).await?;
        }
        if file.list().iter().any(|option| option.section == "Install")
            && let Err(error) = systemd.enable(&path).await
        {
            systemd.disable(unit).await?;
            self.drop_file(unit)?;
            return Err(match Undone::from(error) {
                Undone::Failed(error) => {
                    Undone::Failed(format!("Failed to enable systemd unit {unit}: {error}"))
                }
                other => other,
            });
        }
        self.change(unit, |known| known.state = DesiredState::Loaded);
        Ok(())
    }

    pub(super) async fn start(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
        orders: &Orders,
    ) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        systemd.start(unit).await?;
        self.change(unit, |known| {
            known.state = DesiredState::Launched;
            known.may_run = false;
            known.restarts = orders.restarts(unit);
            known.start_is_awaited = true;
        });
        Ok(())
    }

    pub(super) async fn restart(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
        orders: &Orders,
    ) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        systemd.restart(unit).await?;
        self.change(unit, |known| {
            known.restarts = orders.restarts(unit);
            known.start_is_awaited = true;
        });
        Ok(())
    }

    /// Stops a unit; without orders its next order stays to be carried out.
    pub(super) async fn stop(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
        orders: Option<&Orders>,
    ) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        self.is_about_to_stop(unit);
        systemd.stop(unit).await?;
        self.change(unit, |known| {
            known.may_run = false;
            if let Some(orders) = orders {
                known.restarts = orders.restarts(unit);
            }
        });
        Ok(())
    }

    /// Makes systemd read all unit files again.
    pub(super) async fn reload(&mut self, systemd: &impl Systemd) -> Result<(), Undone> {
        systemd.reload().await?;
        self.memory.needs_reload = false;
        self.unread.clear();
        Ok(())
    }

    /// Stored before the stop: otherwise a process that ends in between would believe that the unit runs.
    fn is_about_to_stop(&mut self, unit: &str) {
        let before = self.memory.units.get(unit).cloned();
        self.change(unit, UnitMemory::unlaunch);
        if self.memory.units.get(unit) != before.as_ref() {
            self.remember();
        }
    }

    pub(super) fn change(&mut self, unit: &str, change: impl FnOnce(&mut UnitMemory)) {
        if let Some(known) = self.memory.units.get_mut(unit) {
            change(known);
        }
    }

    fn drop_file(&mut self, unit: &str) -> io::Result<()> {
        self.disk.remove(unit)?;
        self.on_disk.remove(unit);
        self.memory.units.remove(unit);
        self.left_to_host.remove(unit);
        self.memory.needs_reload = true;
        self.unread.remove(unit);
        Ok(())
    }

    /// Refuses a unit of this name that fleet did not write.
    async fn check_origin(&self, systemd: &impl Systemd, unit: &str) -> Result<(), Undone> {
        match self.foreign_unit_file(systemd, unit).await? {
            None => Ok(()),
            Some(from) => Err(Undone::Failed(format!(
                "this machine has a unit {unit} that fleet did not write, from {from}: it is not changed"
            ))),
        }
    }

    /// Where a unit is from that fleet did not write.
    async fn foreign_unit_file(
        &self,
        systemd: &impl Systemd,
        unit: &str,
    ) -> Result<Option<String>, Error> {
        let ours = self.disk.path(unit);
        Ok(match systemd.origin(unit).await? {
            Origin::None => None,
            Origin::File(path) if path == ours => None,
            // A link to our file.
            Origin::File(path) if std::fs::read_link(&path).is_ok_and(|to| to == ours) => None,
            // Our unit, unlinked, which systemd keeps because another unit names it.
            Origin::File(path) if self.memory.needs_reload && !path.exists() => None,
            Origin::File(path) => Some(path.display().to_string()),
            Origin::Other => Some("systemd itself".to_owned()),
        })
    }
}

async fn state_of(systemd: &impl Systemd, unit: &str) -> Result<SystemdState, Error> {
    let mut states = systemd.states(vec![unit.to_owned()]).await?;
    // systemd reports nothing of units that do not run.
    Ok(states.remove(unit).unwrap_or_else(|| SystemdState {
        load: "not-found".to_owned(),
        active: "inactive".to_owned(),
        sub: "dead".to_owned(),
        start_is_queued: false,
    }))
}

//! Use cases of units, except setting them.

use super::mirror::Picture;
use super::set_unit::changed_meanwhile;
use super::view::unit_view;
use super::{Error, Fleet, Page, UnitView, parse_token};
use crate::keys::KeyStore;
use crate::registry::{self, Stored, UnitRecord, UnitState, Written, decide_and_commit, is_newer};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};

impl<S: KeyStore> Fleet<S> {
    /// Destroys a unit, also a damaged one.
    ///
    /// # Errors
    /// [`Error::NoUnit`]; [`Error::Unreadable`] if a record is of a newer version; [`Error::Busy`] if other
    /// writers kept changing it.
    pub async fn destroy_unit(&self, name: &str) -> Result<(), Error> {
        self.destroy_unit_if(name, |_| true).await
    }

    /// Like [`destroy_unit`](Self::destroy_unit), if `may_change` allows it. It is called with the options of
    /// the current unit.
    ///
    /// # Errors
    /// Those of [`destroy_unit`](Self::destroy_unit); [`Error::Conflict`] if it is not allowed.
    pub async fn destroy_unit_if(
        &self,
        name: &str,
        may_remove: impl Fn(Option<&[UnitOption]>) -> bool,
    ) -> Result<(), Error> {
        decide_and_commit(|| async {
            let removed = self.remove(name, &may_remove).await?;
            Ok(self.recorded(removed))
        })
        .await
    }

    /// Requests a restart from every machine that runs a unit.
    ///
    /// # Errors
    /// [`Error::NoUnit`]; [`Error::Conflict`] if its desired state is not launched; [`Error::Unreadable`];
    /// [`Error::Busy`] if other writers kept changing it.
    pub async fn restart_unit(&self, name: &str) -> Result<(), Error> {
        self.repeat_order(name, DesiredState::Launched, "restart")
            .await
    }

    /// Requests a stop from every machine that has loaded a unit, which systemd may have started for another one.
    ///
    /// # Errors
    /// [`Error::NoUnit`]; [`Error::Conflict`] if its desired state is not loaded; [`Error::Unreadable`];
    /// [`Error::Busy`] if other writers kept changing it.
    pub async fn stop_unit(&self, name: &str) -> Result<(), Error> {
        self.repeat_order(name, DesiredState::Loaded, "stop").await
    }

    async fn repeat_order(
        &self,
        name: &str,
        desired: DesiredState,
        verb: &str,
    ) -> Result<(), Error> {
        decide_and_commit(|| async {
            let unit = self.stored_unit(name).await?;
            if unit.desired.value.state != desired {
                let reason = format!("cannot {verb} {name}: its desired state is not {desired}");
                return Err(Error::Conflict(reason));
            }
            let repeated = self.registry.repeat_order(&unit).await?;
            Ok(self.recorded(repeated))
        })
        .await
    }

    /// Tells the mirror what was written; `None` for a stale write.
    pub(super) fn recorded(&self, written: Written) -> Option<()> {
        match written {
            Written::At(revision) => {
                self.mirror.record_written(revision);
                Some(())
            }
            Written::Stale => None,
        }
    }

    async fn remove(
        &self,
        name: &str,
        may_remove: &impl Fn(Option<&[UnitOption]>) -> bool,
    ) -> Result<Written, Error> {
        let registry = &self.registry;
        let found = registry.find_unit(name).await;
        if let Ok(Some(unit)) = &found
            && !may_remove(Some(&unit.body.value.options))
        {
            return Err(changed_meanwhile());
        }
        Ok(match found {
            Ok(Some(_)) if self.has_unreadable_run(name) => {
                registry.destroy_damaged_unit(name).await?
            }
            Ok(Some(unit)) => registry.destroy_unit(&unit).await?,
            Ok(None) => return Err(Error::NoUnit),
            Err(registry::Error::Unreadable { version, .. }) if !is_newer(version) => {
                registry.destroy_damaged_unit(name).await?
            }
            Err(error) if Error::is_unusable_name(&error) => return Err(Error::NoUnit),
            Err(error) => return Err(error.into()),
        })
    }

    fn has_unreadable_run(&self, name: &str) -> bool {
        let known = |picture: &Picture| picture.snapshot.unreadable_runs(name).next().is_some();
        self.mirror.read(known)
    }

    /// The current unit with this name.
    ///
    /// # Errors
    /// [`Error::NoUnit`].
    pub async fn find_unit(&self, name: &str) -> Result<UnitView, Error> {
        let unit = self.stored_unit(name).await?;
        let state = self.state_of(&unit).await?;
        Ok(unit_view((unit, state)))
    }

    /// The report of the machine where a unit is placed; `None` if this version cannot read it.
    pub(super) async fn state_of(
        &self,
        unit: &UnitRecord,
    ) -> Result<Option<Stored<UnitState>>, Error> {
        let Some(placement) = &unit.placement else {
            return Ok(None);
        };
        let machine = &placement.value.machine;
        match self.registry.find_state(&unit.name, machine).await {
            Err(registry::Error::Unreadable { .. }) => Ok(None),
            read => Ok(read?),
        }
    }

    pub(super) async fn stored_unit(&self, name: &str) -> Result<UnitRecord, Error> {
        match self.registry.find_unit(name).await {
            Ok(unit) => unit.ok_or(Error::NoUnit),
            Err(error) if Error::is_unusable_name(&error) => Err(Error::NoUnit),
            Err(error) => Err(error.into()),
        }
    }

    /// Units by name. Unreadable ones are left out.
    ///
    /// # Errors
    /// [`Error::Token`]; [`Error::Unavailable`] while the mirror is not connected.
    pub async fn list_units(&self, token: Option<&str>) -> Result<Page<UnitView>, Error> {
        let after = parse_token(token)?;
        let (after, limit) = (after.as_ref(), self.page_size);
        let list = |picture: &Picture| picture.snapshot.list_units(after, limit);
        Ok(self.mirrored(list).await??.map(unit_view))
    }
}

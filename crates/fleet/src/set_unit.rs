//! Sets a unit: creates it, replaces its file, or changes its desired state. The current unit decides which, by
//! the older server's rules in their order.

use super::mirror::Picture;
use super::{Error, Fleet};
use crate::keys::KeyStore;
use crate::registry::{self, Body, ReplacesTurn, decide_and_commit};
use hyperfleet_fleet_model::unit::{
    DesiredState, Options, Replacing, UnitName, UnitOption, validity,
};

/// What a unit is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetUnit {
    /// The unit's file; `None` or empty: it stays unchanged.
    pub options: Option<Vec<UnitOption>>,
    /// `None`: it stays unchanged; `Inactive` for a new unit.
    pub desired: Option<DesiredState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    Created,
    Replaced,
    /// Its file is unchanged. Its desired state may have changed.
    Updated,
}

impl<S: KeyStore> Fleet<S> {
    /// Creates a unit, replaces its file or sets its desired state.
    ///
    /// # Guarantees
    /// The write was decided on the records that it replaces. A unit with a new file stays where it is placed.
    /// Without a desired state in the request, a unit with a new file is inactive.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Conflict`], with the reason; [`Error::Busy`] if other writers kept
    /// changing it.
    pub async fn set_unit(&self, name: &str, request: SetUnit) -> Result<Set, Error> {
        self.set_unit_if(name, request, |_| true).await
    }

    /// Like [`set_unit`](Self::set_unit), if `may_change` allows it. It is called with the options of the
    /// current unit, or `None` without one.
    ///
    /// # Errors
    /// Those of [`set_unit`](Self::set_unit); [`Error::Conflict`] if it is not allowed.
    pub async fn set_unit_if(
        &self,
        name: &str,
        request: SetUnit,
        may_change: impl Fn(Option<&[UnitOption]>) -> bool,
    ) -> Result<Set, Error> {
        let name = UnitName::parse(name).map_err(invalid)?;
        decide_and_commit(|| async {
            let found = self.registry.find_unit(name.as_str()).await?;
            let options = found.as_ref().map(|unit| &*unit.body.value.options);
            if !may_change(options) {
                return Err(changed_meanwhile());
            }
            let (body, state) = decide(&name, &request, found.as_ref())?;
            let turn = self.check_replaces(&name, body.as_ref()).await?;
            self.write(&name, found, (body, state), turn).await
        })
        .await
    }

    /// Writes a decision; `None` if the records have changed since.
    async fn write(
        &self,
        name: &UnitName,
        found: Option<registry::UnitRecord>,
        (body, state): (Option<Body>, DesiredState),
        turn: Option<ReplacesTurn>,
    ) -> Result<Option<Set>, Error> {
        let registry = &self.registry;
        let (written, set) = match (found, body) {
            (Some(unit), Some(body)) => {
                let written = registry.replace_unit(&unit, &body, state, turn).await?;
                (written, Set::Replaced)
            }
            (Some(unit), None) => {
                let written = registry.set_desired_state(&unit, state).await?;
                (written, Set::Updated)
            }
            (None, Some(body)) => {
                let created = registry.create_unit(name.as_str(), &body, state, turn);
                (created.await?, Set::Created)
            }
            (None, None) => return Ok(None),
        };
        Ok(self.recorded(written).map(|()| set))
    }

    /// Refuses a file that closes a circle of units that replace each other. `None` for a file without
    /// `Replaces`.
    ///
    /// Two units that are set at the same moment, here or by other servers, cannot close a circle together:
    /// each unit with `Replaces` is checked against all earlier ones.
    async fn check_replaces(
        &self,
        name: &UnitName,
        body: Option<&Body>,
    ) -> Result<Option<ReplacesTurn>, Error> {
        let patterns = body.map(|body| Replacing::patterns(name.as_str(), &body.options));
        let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) else {
            return Ok(None);
        };
        let turn = self.registry.begin_replaces().await?;
        let circular = |picture: &Picture| {
            let circle = picture.replacing.circle(name.as_str(), &patterns);
            circle.map(|units| circular(&units))
        };
        let last = turn.last.unwrap_or_default();
        if !self.mirror.reaches(last).await {
            return Err(Error::Unavailable(None));
        }
        match self.mirrored(circular).await? {
            Some(text) => Err(Error::Invalid(text)),
            None => Ok(Some(turn)),
        }
    }
}

/// The message for a circle of units, in the order in which they replace each other.
fn circular(units: &[&str]) -> String {
    if let [first, second] = units {
        return format!("circular Replaces: {first:?} and {second:?} replace each other");
    }
    let next = units.iter().cycle().skip(1);
    let links = units
        .iter()
        .zip(next)
        .enumerate()
        .map(|(index, (unit, next))| match index {
            0 => format!("{unit:?} replaces {next:?}"),
            _ => format!(", which replaces {next:?}"),
        });
    let links: String = links.collect();
    format!("circular Replaces: {links}")
}

/// What a request means for the current unit: the new file, if it differs, and the desired state.
fn decide(
    name: &UnitName,
    request: &SetUnit,
    found: Option<&registry::UnitRecord>,
) -> Result<(Option<Body>, DesiredState), Error> {
    let conflict = |text: &str| Error::Conflict(text.to_owned());
    let options = request.options.as_deref().filter(|list| !list.is_empty());
    let options = options.map(Options::new).transpose().map_err(invalid)?;
    if options.is_none() && found.is_none() {
        return Err(conflict("unit does not exist and options field empty"));
    }
    let is_same = |hash: String| found.is_some_and(|unit| unit.body.value.hash == hash);
    let other = options.filter(|options| !is_same(options.hash().to_string()));
    let state = if let Some(options) = &other {
        validity::check(options).map_err(invalid)?;
        request.desired.unwrap_or_default()
    } else {
        let missing = || conflict("must provide DesiredState to update existing unit");
        request.desired.ok_or_else(missing)?
    };
    state.check(name).map_err(invalid)?;
    Ok((other.map(|options| Body::new(name, &options)), state))
}

pub(super) fn changed_meanwhile() -> Error {
    Error::Conflict("the unit was changed by others meanwhile".to_owned())
}

fn invalid(fault: impl std::error::Error) -> Error {
    Error::Invalid(fault.to_string())
}

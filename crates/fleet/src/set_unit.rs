//! Sets a unit: creates it, replaces its file, or changes its desired state. The current unit decides which, by
//! the older server's rules in their order.

use tokio::sync::MutexGuard;

use super::mirror::Picture;
use super::turns::pause;
use super::{ATTEMPTS_MAX, Error, Fleet};
use crate::keys::KeyStore;
use crate::registry::{self, Body, ReplacesTurn, Written};
use hyperfleet_fleet_model::shown;
use hyperfleet_fleet_model::unit::{
    DesiredState, Options, Replacing, UnitName, UnitOption, validity,
};
use hyperfleet_fleet_model::wire::SetUnit;

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
        let name = checked_name(name, request.name.as_deref())?;
        let _turn = self.turns.acquire(name.as_str()).await;
        for lost in 0..ATTEMPTS_MAX {
            let found = self.registry.find_unit(name.as_str()).await?;
            let options = found.as_ref().map(|unit| &*unit.body.value.options);
            if !may_change(options) {
                return Err(changed_meanwhile());
            }
            let (body, state) = decide(&name, &request, found.as_ref())?;
            let replaces = self.check_replaces(&name, body.as_ref()).await?;
            if let Some(set) = self.write(&name, found, (body, state), replaces).await? {
                return Ok(set);
            }
            pause(lost).await;
        }
        Err(Error::Busy)
    }

    /// Writes a decision; `None` if the records have changed since.
    async fn write(
        &self,
        name: &UnitName,
        found: Option<registry::UnitRecord>,
        (body, state): (Option<Body>, DesiredState),
        replaces: Option<InTurn<'_>>,
    ) -> Result<Option<Set>, Error> {
        let registry = &self.registry;
        let turn = replaces.as_ref().map(|in_turn| in_turn.turn);
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
        Ok(match written {
            Written::At(revision) => {
                self.mirror.record_written(revision);
                Some(set)
            }
            Written::Stale => None,
        })
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
    ) -> Result<Option<InTurn<'_>>, Error> {
        let patterns = body.map(|body| Replacing::patterns(name.as_str(), &body.options));
        let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) else {
            return Ok(None);
        };
        let own = self.turns.acquire_replaces().await;
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
            None => Ok(Some(InTurn { turn, _own: own })),
        }
    }
}

/// Permission to give a unit `Replaces`. While it lives, no other request of this process may; other servers
/// are detected by the guard.
struct InTurn<'a> {
    turn: ReplacesTurn,
    _own: Option<MutexGuard<'a, ()>>,
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

/// The unit's name from the URL, checked, and compared with that in the body.
fn checked_name(in_url: &str, in_body: Option<&str>) -> Result<UnitName, Error> {
    let in_body = in_body.filter(|name| !name.is_empty()).unwrap_or(in_url);
    if in_body != in_url {
        return Err(Error::Invalid(format!(
            "name in URL {:?} differs from unit name in request body {:?}",
            shown(in_url),
            shown(in_body)
        )));
    }
    UnitName::parse(in_body).map_err(invalid)
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

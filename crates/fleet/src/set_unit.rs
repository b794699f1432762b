//! Setting a unit: creating it, giving it another file, or saying what is wanted of it. What a request means
//! depends on what is there (facts: reference fleet §1.3, in this order).

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

/// What a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// There is a new unit.
    Created,
    /// It has another file.
    Replaced,
    /// It has the file that it had, and something else may be wanted of it.
    Updated,
}

impl<S: KeyStore> Fleet<S> {
    /// Creates a unit, gives it another file or says what is wanted of it.
    ///
    /// # Guarantees
    /// What is written was decided on what was there when it was written. A unit that gets another file stays where
    /// it is placed. If nothing is said of what is wanted, it is inactive with its new file.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Conflict`], with what is wrong; [`Error::Busy`] if others changed it all the
    /// time.
    pub async fn set_unit(&self, name: &str, request: SetUnit) -> Result<Set, Error> {
        self.set_unit_if(name, request, |_| true).await
    }

    /// The same, if the unit that is there, of which the options are given, may be changed; `None` for no unit.
    ///
    /// # Errors
    /// Those of [`set_unit`](Self::set_unit); [`Error::Conflict`] if it may not.
    pub async fn set_unit_if(
        &self,
        name: &str,
        request: SetUnit,
        may_change: impl Fn(Option<&[UnitOption]>) -> bool,
    ) -> Result<Set, Error> {
        let name = checked_name(name, request.name.as_deref())?;
        let _turn = self.turns.take(name.as_str()).await;
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

    /// Writes what was decided; none if it is not there any more what it was decided on.
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
                self.mirror.wrote(revision);
                Some(set)
            }
            Written::Stale => None,
        })
    }

    /// Refuses a file that closes a circle of units that replace each other. `None` for a file without `Replaces`.
    ///
    /// Two units that are set at the same moment, here or by other servers, cannot close one together: of those that are
    /// given `Replaces` each is checked with all before it.
    async fn check_replaces(
        &self,
        name: &UnitName,
        body: Option<&Body>,
    ) -> Result<Option<InTurn<'_>>, Error> {
        let patterns = body.map(|body| Replacing::patterns(name.as_str(), &body.options));
        let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) else {
            return Ok(None);
        };
        let own = self.turns.take_replaces().await;
        let turn = self.registry.begin_replaces().await?;
        let circular = |picture: &Picture| {
            let circle = picture.replacing.circle(name.as_str(), &patterns);
            circle.map(|units| circular(&units))
        };
        let has_own_writes = self.mirror.has_own_writes().await;
        let last = turn.last.unwrap_or_default();
        let refused = if has_own_writes && self.mirror.comes_soon_to(last).await {
            self.mirror.read(circular)
        } else {
            circular(&Picture::of(self.registry.snapshot().await?))
        };
        match refused {
            Some(text) => Err(Error::Invalid(text)),
            None => Ok(Some(InTurn { turn, _own: own })),
        }
    }
}

/// A unit may be given `Replaces`, as far as other servers give it to none meanwhile. This one does not while this
/// lives.
struct InTurn<'a> {
    turn: ReplacesTurn,
    _own: Option<MutexGuard<'a, ()>>,
}

/// Why a circle of units is refused; they are in the order in which they replace each other.
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

/// The name of the URL, if the body does not say another and it is one.
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

/// What a request means, given what is there: its file, if that is another than the unit has, and what is wanted.
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
        desired(request)?.unwrap_or_default()
    } else {
        desired(request)?
            .ok_or_else(|| conflict("must provide DesiredState to update existing unit"))?
    };
    state.check(name).map_err(invalid)?;
    Ok((other.map(|options| Body::new(name, &options)), state))
}

pub(super) fn changed_meanwhile() -> Error {
    Error::Conflict("the unit was changed by others meanwhile".to_owned())
}

/// What the request says of what is wanted, if it does.
fn desired(request: &SetUnit) -> Result<Option<DesiredState>, Error> {
    let text = request.desired.as_deref().filter(|text| !text.is_empty());
    text.map(str::parse).transpose().map_err(invalid)
}

fn invalid(fault: impl std::error::Error) -> Error {
    Error::Invalid(fault.to_string())
}

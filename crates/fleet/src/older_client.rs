//! Restarts by the older `fleetctl`.
//!
//! ```text
//! PUT loaded ─▶ GET until currentState is launched ─▶ PUT launched ─▶ GET until currentState is launched
//! ```
//!
//! Its first wait is for the state that the unit is about to leave. The older server took seconds to show that a unit
//! had stopped, so the wait ended at the first answer. Agents of this version report within milliseconds: the wait
//! would never end, and the unit would stay stopped. Such a client is therefore shown the launched unit a little
//! longer. If it only stops the unit, it waits that much longer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Error, Fleet, Set, SetUnit, UnitView};
use crate::keys::KeyStore;
use hyperfleet_fleet_model::unit::DesiredState;

/// How long a unit is shown as launched. The client asks four times a second.
const SHOWN: Duration = Duration::from_secs(1);
/// A client that has not asked by then has gone.
const KEPT: Duration = Duration::from_mins(1);

/// Launched units that older clients have set to loaded, by name.
#[derive(Debug, Default)]
pub(super) struct OlderStops(Mutex<BTreeMap<String, Stop>>);

#[derive(Debug)]
struct Stop {
    at: Instant,
    /// Whether a client has seen the unit as launched since.
    was_shown: bool,
}

impl OlderStops {
    fn begin(&self, unit: &str) {
        let (at, was_shown) = (Instant::now(), false);
        let mut stops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stops.retain(|_, stop| stop.at.elapsed() < KEPT);
        stops.insert(unit.to_owned(), Stop { at, was_shown });
    }

    fn forget(&self, unit: &str) {
        let mut stops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stops.remove(unit);
    }

    /// Whether to show a unit as launched. The first answer shows it, however late the client asks.
    fn shows_launched(&self, unit: &str) -> bool {
        let mut stops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stop) = stops.get_mut(unit) else {
            return false;
        };
        let is_first = !std::mem::replace(&mut stop.was_shown, true);
        let is_shown = is_first || stop.at.elapsed() < SHOWN;
        if !is_shown {
            stops.remove(unit);
        }
        is_shown
    }
}

impl<S: KeyStore> Fleet<S> {
    /// Like [`set_unit`](Self::set_unit), for the older client.
    ///
    /// # Errors
    /// Those of [`set_unit`](Self::set_unit).
    pub async fn set_unit_for_older(&self, name: &str, request: SetUnit) -> Result<Set, Error> {
        let loads = request.desired == Some(DesiredState::Loaded);
        let before = if loads {
            self.find_unit(name).await.ok()
        } else {
            None
        };
        let set = self.set_unit(name, request).await?;
        let was_launched = before.is_some_and(|unit| unit.current == Some(DesiredState::Launched));
        if was_launched && set == Set::Updated {
            self.older_stops.begin(name);
        } else {
            self.older_stops.forget(name);
        }
        Ok(set)
    }

    /// Like [`find_unit`](Self::find_unit), for the older client.
    ///
    /// # Errors
    /// Those of [`find_unit`](Self::find_unit).
    pub async fn find_unit_for_older(&self, name: &str) -> Result<UnitView, Error> {
        let mut unit = self.find_unit(name).await?;
        if unit.current == Some(DesiredState::Loaded) && self.older_stops.shows_launched(name) {
            unit.current = Some(DesiredState::Launched);
        }
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stopped_unit_is_shown_as_launched_once_and_for_a_second() {
        let stops = OlderStops::default();
        assert!(!stops.shows_launched("a"));
        stops.begin("a");
        advance(SHOWN * 2).await;
        assert!(stops.shows_launched("a"), "a client that asks late");
        assert!(!stops.shows_launched("a"));
        stops.begin("a");
        for _ in 0..4 {
            assert!(stops.shows_launched("a"));
            advance(SHOWN / 4).await;
        }
        assert!(!stops.shows_launched("a"));
        stops.begin("a");
        stops.forget("a");
        assert!(!stops.shows_launched("a"));
        stops.begin("a");
        advance(KEPT).await;
        stops.begin("b");
        assert!(!stops.shows_launched("a"));
    }
}

//! Desired states of units.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::name::UnitName;
use crate::shown;

/// A desired or current state of a unit.
// Ordered: each state includes the one before.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(rename_all = "lowercase", try_from = "String")]
#[schema(as = State)]
pub enum DesiredState {
    /// Known, and on no machine. It takes part in no decision.
    #[default]
    Inactive,
    /// On a machine, and loaded in its systemd.
    Loaded,
    /// On a machine, and started.
    Launched,
}

/// A text that is no desired state. The older server answered 500 or stored it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid desired state {0:?}: expect inactive, loaded, or launched")]
pub struct InvalidState(String);

/// A template with an active state: systemd refuses to load it, and the older agent hung on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot activate template {:?}", .0.as_str())]
pub struct ActiveTemplate(UnitName);

impl DesiredState {
    pub const ALL: [Self; 3] = [Self::Inactive, Self::Loaded, Self::Launched];

    /// The word for clients.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Loaded => "loaded",
            Self::Launched => "launched",
        }
    }

    /// Whether a unit of that name may have this state, whatever its file.
    ///
    /// # Errors
    /// It is a template, and the state is not inactive.
    pub fn check(self, name: &UnitName) -> Result<(), ActiveTemplate> {
        if self.is_active() && name.is_template() {
            return Err(ActiveTemplate(name.clone()));
        }
        Ok(())
    }

    /// Whether the unit needs a machine.
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }
}

impl FromStr for DesiredState {
    type Err = InvalidState;

    fn from_str(text: &str) -> Result<Self, InvalidState> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| InvalidState(shown(text)))
    }
}

impl TryFrom<String> for DesiredState {
    type Error = InvalidState;

    fn try_from(text: String) -> Result<Self, InvalidState> {
        text.parse()
    }
}

impl fmt::Display for DesiredState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_not_activated() {
        let named = |name: &str| UnitName::parse(name).expect("a good name");
        for state in [DesiredState::Loaded, DesiredState::Launched] {
            let refused = state.check(&named("t@.service")).expect_err("a template");
            assert_eq!(
                refused.to_string(),
                r#"cannot activate template "t@.service""#
            );
            assert_eq!(state.check(&named("t@5.service")), Ok(()));
        }
        assert_eq!(DesiredState::Inactive.check(&named("t@.service")), Ok(()));
    }

    #[test]
    fn states_are_read_by_their_words_alone() {
        for state in DesiredState::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        for wrong in ["", "Loaded", " loaded", "active"] {
            let fault = wrong.parse::<DesiredState>().expect_err(wrong).to_string();
            let named = DesiredState::ALL.iter().all(|s| fault.contains(s.as_str()));
            assert!(named && fault.contains(&format!("{wrong:?}")), "{fault}");
        }
        assert_eq!(DesiredState::default(), DesiredState::Inactive);
        let active = DesiredState::ALL.map(DesiredState::is_active);
        assert_eq!(active, [false, true, true]);
    }
}

//! Plans the change for each unit of an old cluster.

use std::collections::BTreeMap;

use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitHash};

use super::OldUnit;
use crate::source::check;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Create(Options),
    /// It exists with the same file and another desired state.
    SetState,
    Nothing,
    /// It exists with another file, which stays.
    Differs,
    /// It cannot be imported.
    Invalid(String),
}

/// A unit of the old cluster and its action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) name: String,
    pub(crate) desired: DesiredState,
    pub(crate) action: Action,
}

impl Action {
    /// Its text in the table.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Create(_) => "create".to_owned(),
            Self::SetState => "set state".to_owned(),
            Self::Nothing => "exists".to_owned(),
            Self::Differs => "exists with other content: left as it is".to_owned(),
            Self::Invalid(reason) => format!("invalid: {reason}"),
        }
    }

    /// Whether something must be written.
    pub(crate) fn is_change(&self) -> bool {
        matches!(self, Self::Create(_) | Self::SetState)
    }

    /// Whether the unit is not imported.
    pub(crate) fn is_problem(&self) -> bool {
        matches!(self, Self::Differs | Self::Invalid(_))
    }
}

/// Decides about each unit of the old cluster. `here` has the files and desired states of this cluster's units.
/// A file that cannot be read counts as a different one.
pub(crate) fn plan(
    old: Vec<OldUnit>,
    here: &BTreeMap<String, (Option<UnitHash>, DesiredState)>,
) -> Vec<Import> {
    let import = |unit: OldUnit| Import {
        action: action(&unit.name, unit.desired, unit.options, here.get(&unit.name)),
        name: unit.name,
        desired: unit.desired,
    };
    old.into_iter().map(import).collect()
}

fn action(
    name: &str,
    desired: DesiredState,
    options: Result<Options, String>,
    here: Option<&(Option<UnitHash>, DesiredState)>,
) -> Action {
    let options = match options {
        Ok(options) => options,
        Err(reason) => return Action::Invalid(reason),
    };
    if let Err(error) = check(name, &options) {
        return Action::Invalid(error.to_string());
    }
    match here {
        None => Action::Create(options),
        Some((hash, _)) if *hash != Some(options.hash()) => Action::Differs,
        Some((_, state)) if *state != desired => Action::SetState,
        Some(_) => Action::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_has_its_action() {
        let options = |text: &str| Options::parse(text.as_bytes()).unwrap();
        let file = options("[Service]\nExecStart=/bin/a\n");
        let other = options("[Service]\nExecStart=/bin/b\n");
        let contradiction = options("[X-Fleet]\nGlobal=true\nMachineOf=b.service\n");
        let launched = DesiredState::Launched;
        let here = BTreeMap::from([
            ("same.service".to_owned(), (Some(file.hash()), launched)),
            (
                "state.service".to_owned(),
                (Some(file.hash()), DesiredState::Inactive),
            ),
            ("other.service".to_owned(), (Some(other.hash()), launched)),
            ("unreadable.service".to_owned(), (None, launched)),
        ]);
        let old = [
            ("new.service", Ok(file.clone())),
            ("same.service", Ok(file.clone())),
            ("state.service", Ok(file.clone())),
            ("other.service", Ok(file.clone())),
            ("unreadable.service", Ok(file.clone())),
            ("bad.service", Ok(contradiction)),
            ("lost.service", Err("its file is missing".to_owned())),
        ];
        let old = old.map(|(name, options)| OldUnit {
            name: name.to_owned(),
            desired: launched,
            options,
        });
        let words: Vec<_> = plan(old.to_vec(), &here)
            .iter()
            .map(|import| import.action.words())
            .collect();
        assert_eq!(
            words,
            [
                "create",
                "exists",
                "set state",
                "exists with other content: left as it is",
                "exists with other content: left as it is",
                "invalid: bad.service: Global cannot be used with Peers",
                "invalid: its file is missing",
            ]
        );
    }
}

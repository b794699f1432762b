//! Finds the file of a unit: in the cluster, as a local file, or from a template of either.
//!
//! ```text
//! stored unit ─▶ local file ─▶ stored template ─▶ template file beside the argument
//! ```
//!
//! The first that exists counts. With `--replace` the local files come first, and a stored template before a stored
//! instance.

mod files;

use std::path::{Path, PathBuf};

use hyperfleet_fleet_model::unit::validity::{self, Contradiction};
use hyperfleet_fleet_model::unit::{
    DesiredState, InvalidName, InvalidOptions, NameParts, Options, UNIT_TYPES, UnitHash, UnitName,
};
use hyperfleet_fleet_model::wire::UnitView;

use crate::output::counted;

pub(crate) use files::{Source, local_file, read_file};

/// A unit as an argument names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitArgument {
    /// The path of its file, if it has one.
    pub path: PathBuf,
    pub name: String,
}

impl UnitArgument {
    /// Parses an argument: a path or a name, with `.service` appended if it has no unit type.
    pub(crate) fn new(argument: &str) -> Self {
        let suffix = argument.rsplit_once('.').map(|(_, suffix)| suffix);
        let has_type = suffix.is_some_and(|suffix| UNIT_TYPES.contains(&suffix));
        let path = if has_type {
            PathBuf::from(argument)
        } else {
            PathBuf::from(format!("{argument}.service"))
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            name: name.to_string_lossy().into_owned(),
            path,
        }
    }

    /// The name of the template that it is an instance of.
    pub(crate) fn template(&self) -> Option<String> {
        let parts = NameParts::of(&self.name)?;
        parts.template().filter(|template| *template != self.name)
    }

    /// Whether it is a template.
    pub(crate) fn is_template(&self) -> bool {
        let template = NameParts::of(&self.name).and_then(|parts| parts.template());
        template.is_some_and(|template| template == self.name)
    }

    /// The file of its template, beside its own.
    pub(crate) fn template_path(&self) -> Option<PathBuf> {
        Some(self.path.with_file_name(self.template()?))
    }
}

/// Why a unit cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("unable to find Unit({0}) in Registry or on filesystem")]
    NoUnit(String),
    #[error("unable to find template Unit({0}) in Registry or on filesystem")]
    NoTemplate(String),
    #[error("unable to read {}: {cause}", .path.display())]
    File {
        path: PathBuf,
        cause: std::io::Error,
    },
    #[error("{name}: {cause}")]
    Options { name: String, cause: InvalidOptions },
    #[error("{name}: {cause}")]
    Name { name: String, cause: InvalidName },
    #[error("{0}: the unit file is empty")]
    Empty(String),
    #[error("{name}: {cause}")]
    Contradiction { name: String, cause: Contradiction },
}

/// The options of a stored unit.
///
/// # Errors
/// They are invalid: the server has other rules.
pub(crate) fn stored_options(unit: &UnitView) -> Result<Options, SourceError> {
    Options::new(&unit.options).map_err(|cause| SourceError::Options {
        name: unit.name.clone(),
        cause,
    })
}

/// Checks what the server would check, and returns warnings about what neither would refuse.
///
/// # Errors
/// The first broken rule.
pub(crate) fn check(name: &str, options: &Options) -> Result<Vec<String>, SourceError> {
    UnitName::parse(name).map_err(|cause| SourceError::Name {
        name: name.to_owned(),
        cause,
    })?;
    if options.list().is_empty() {
        return Err(SourceError::Empty(name.to_owned()));
    }
    validity::check(options).map_err(|cause| SourceError::Contradiction {
        name: name.to_owned(),
        cause,
    })?;
    let warnings = options.warnings().into_iter();
    Ok(warnings
        .map(|warning| format!("Unit {name}: {warning}"))
        .collect())
}

/// The action for a stored unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Leave its file unchanged, and print this.
    Keep {
        notice: Option<String>,
        /// Whether it differs, and was to be replaced.
        is_refused: bool,
    },
    /// Replace its file by the local one.
    Replace(Options),
}

/// Decides what to do with a stored unit. `replace_up_to` is the highest desired state that `--replace` may
/// replace with this command; `None` without the flag.
pub(crate) fn decide_stored(
    name: &str,
    stored: UnitHash,
    desired: DesiredState,
    local: Option<Source>,
    replace_up_to: Option<DesiredState>,
) -> Stored {
    let Some(local) = local else {
        return Stored::Keep {
            notice: None,
            is_refused: false,
        };
    };
    let is_same = local.options.hash() == stored;
    let notice = match replace_up_to {
        None if is_same => None,
        None => Some(format!(
            "WARNING: Unit {name} in registry differs from local unit file {}. Add --replace to override.",
            local.path.display()
        )),
        Some(_) if is_same => Some(format!(
            "Found same Unit({name}) in Registry, nothing to do"
        )),
        Some(highest) if desired <= highest => {
            return Stored::Replace(local.options);
        }
        Some(_) => Some(format!(
            "Warning: can not replace Unit({name}) in state '{desired}', use the appropriate command"
        )),
    };
    Stored::Keep {
        notice,
        is_refused: replace_up_to.is_some() && !is_same,
    }
}

/// A warning about a stored template that differs from its local file, of which an instance is created.
pub(crate) fn differing_template(template: &str, path: &Path, replaces: bool) -> String {
    let path = path.display();
    if replaces {
        return format!(
            "WARNING: Template {template} in registry differs from local unit file {path}, which is used. Run fleetctl submit --replace {path} to replace the template as well."
        );
    }
    format!(
        "WARNING: Template {template} in registry differs from local unit file {path}. Add --replace to use the local file."
    )
}

/// A warning about instances whose files differ from that of their template.
pub(crate) fn differing_instances(
    template: &str,
    options: &Options,
    units: &[(String, UnitHash)],
) -> Option<String> {
    let is_instance = |name: &str| {
        let parts = NameParts::of(name).and_then(|parts| parts.template());
        name != template && parts.as_deref() == Some(template)
    };
    let differing = units
        .iter()
        .filter(|(name, hash)| is_instance(name) && *hash != options.hash());
    let names: Vec<_> = differing.map(|(name, _)| name.as_str()).collect();
    let some = names
        .iter()
        .take(EXAMPLES_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let more = if names.len() > EXAMPLES_MAX {
        ", …"
    } else {
        ""
    };
    names.first().map(|first| {
        format!(
            "WARNING: {} of template {template} differ from it: {some}{more}. Replace them one after the other, so that a wrong file stops one of them only: fleetctl start --replace {first}",
            counted(names.len(), "instance")
        )
    })
}

/// How many names a warning lists.
const EXAMPLES_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use hyperfleet_fleet_model::unit::UnitOption;

    use super::*;

    fn options(command: &str) -> Options {
        Options::new(&[UnitOption::new("Service", "ExecStart", command)]).unwrap()
    }

    #[test]
    fn arguments_are_paths_or_names() {
        for (argument, path, name) in [
            ("hello", "hello.service", "hello.service"),
            ("./units/hello", "./units/hello.service", "hello.service"),
            ("/a/b.timer", "/a/b.timer", "b.timer"),
            ("foo.target", "foo.target", "foo.target"),
            ("foo.bar", "foo.bar.service", "foo.bar.service"),
            ("a.automount", "a.automount", "a.automount"),
            ("t@1", "t@1.service", "t@1.service"),
        ] {
            let expected = UnitArgument {
                path: path.into(),
                name: name.to_owned(),
            };
            assert_eq!(UnitArgument::new(argument), expected);
        }
    }

    #[test]
    fn instances_have_templates_beside_them() {
        let instance = UnitArgument::new("units/t@5");
        assert_eq!(instance.template().as_deref(), Some("t@.service"));
        assert_eq!(instance.template_path(), Some("units/t@.service".into()));
        for other in ["t@.service", "t.service"] {
            assert_eq!(UnitArgument::new(other).template(), None);
        }
    }

    #[test]
    fn stored_units_are_replaced_only_when_asked_and_allowed() {
        use DesiredState::{Inactive, Launched, Loaded};
        let local = Source {
            path: "a.service".into(),
            options: options("/bin/new"),
        };
        let (old, new) = (options("/bin/old").hash(), local.options.hash());
        let decided = |stored, desired, replace| match decide_stored(
            "a.service",
            stored,
            desired,
            Some(local.clone()),
            replace,
        ) {
            Stored::Replace(_) => "replace".to_owned(),
            Stored::Keep { notice, .. } => notice.unwrap_or_default(),
        };
        assert_eq!(decided(new, Launched, None), "");
        assert_eq!(
            decided(old, Inactive, None),
            "WARNING: Unit a.service in registry differs from local unit file a.service. Add --replace to override."
        );
        assert_eq!(
            decided(new, Launched, Some(Launched)),
            "Found same Unit(a.service) in Registry, nothing to do"
        );
        for (desired, highest, may) in [
            (Inactive, Inactive, true),
            (Loaded, Inactive, false),
            (Loaded, Loaded, true),
            (Launched, Loaded, false),
            (Launched, Launched, true),
        ] {
            let said = decided(old, desired, Some(highest));
            assert_eq!(said == "replace", may, "{desired} {highest}: {said}");
        }
        let refused = decided(old, Launched, Some(Inactive));
        assert_eq!(
            refused,
            "Warning: can not replace Unit(a.service) in state 'launched', use the appropriate command"
        );
        let kept = decide_stored("a.service", old, Launched, None, Some(Launched));
        let (notice, is_refused) = (None, false);
        assert_eq!(kept, Stored::Keep { notice, is_refused });
    }

    #[test]
    fn instances_that_differ_from_their_template_are_named() {
        let (same, other) = (options("/bin/a").hash(), options("/bin/b").hash());
        let unit = |name: &str, hash| (name.to_owned(), hash);
        let units = [
            unit("t@.service", other),
            unit("t@1.service", same),
            unit("t@2.service", other),
            unit("tt@3.service", other),
        ];
        let warning = differing_instances("t@.service", &options("/bin/a"), &units).unwrap();
        assert!(
            warning.starts_with(
                "WARNING: 1 instance of template t@.service differ from it: t@2.service."
            ),
            "{warning}"
        );
        assert_eq!(
            differing_instances("t@.service", &options("/bin/a"), &units[..2]),
            None
        );
    }
}

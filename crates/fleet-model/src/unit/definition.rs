//! A unit as users define it.

use super::desired::DesiredState;
use super::fleet_section::FleetSection;
use super::name::UnitName;
use super::options::Options;
use super::requirements::Requirements;
use super::text::UnitHash;
use super::validity::{self, Contradiction};

/// What is to run, and how far. Where it runs is no part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    name: UnitName,
    options: Options,
    desired: DesiredState,
}

/// Why there can be no such unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUnit {
    /// What it asks for cannot be meant.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// It is a template: systemd refuses to load one, and would wedge the older agent.
    #[error("cannot activate template {:?}", .0.as_str())]
    Template(UnitName),
}

impl Unit {
    /// A unit that comes in, to be created or to replace one.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; then a template that is to be more than inactive.
    pub fn new(
        name: UnitName,
        options: Options,
        desired: DesiredState,
    ) -> Result<Self, InvalidUnit> {
        validity::check(&options)?;
        Self::stored(name, options, DesiredState::Inactive).with_desired(desired)
    }

    /// A unit that was checked before it was stored. Rules may have changed since; what is stored
    /// stays.
    #[must_use]
    pub fn stored(name: UnitName, options: Options, desired: DesiredState) -> Self {
        Self {
            name,
            options,
            desired,
        }
    }

    /// The unit in another desired state.
    ///
    /// # Errors
    ///
    /// It is a template, and the state is more than inactive.
    pub fn with_desired(self, desired: DesiredState) -> Result<Self, InvalidUnit> {
        Self::check_desired(&self.name, desired)?;
        Ok(Self { desired, ..self })
    }

    /// Whether a unit of that name may be brought so far, whatever its file says.
    ///
    /// # Errors
    ///
    /// It is a template, and the state is more than inactive.
    pub fn check_desired(name: &UnitName, desired: DesiredState) -> Result<(), InvalidUnit> {
        if desired.is_active() && name.is_template() {
            return Err(InvalidUnit::Template(name.clone()));
        }
        Ok(())
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &UnitName {
        &self.name
    }

    /// What its file says.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What tells its file from others.
    #[must_use]
    pub fn hash(&self) -> UnitHash {
        self.options.hash()
    }

    /// How far it is to be brought.
    #[must_use]
    pub fn desired(&self) -> DesiredState {
        self.desired
    }

    /// What it asks of machines, with the parts of its name in place.
    #[must_use]
    pub fn requirements(&self) -> Requirements {
        let section = FleetSection::of(self.options.list());
        section.requirements(self.name.parts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, file: &str, desired: DesiredState) -> Result<Unit, InvalidUnit> {
        let name = UnitName::parse(name).expect("a good name");
        let options = Options::parse(file.as_bytes()).expect("a good file");
        Unit::new(name, options, desired)
    }

    #[test]
    fn templates_are_kept_and_not_activated() {
        let file = "[Service]\nExecStart=/bin/true";
        let template = unit("t@.service", file, DesiredState::Inactive).expect("may be kept");
        for state in [DesiredState::Loaded, DesiredState::Launched] {
            let refused = r#"cannot activate template "t@.service""#;
            let created = unit("t@.service", file, state).expect_err(refused);
            assert_eq!(created.to_string(), refused);
            let updated = template.clone().with_desired(state).expect_err(refused);
            assert_eq!(updated.to_string(), refused);
            let instance = unit("t@5.service", file, state).expect("may run");
            assert_eq!(instance.desired(), state);
        }
        assert_eq!(
            template.clone().with_desired(DesiredState::Inactive),
            Ok(template)
        );
    }

    #[test]
    fn what_it_asks_for_is_by_its_name() {
        let file = "[X-Fleet]\nMachineOf=%p.socket\nMachineMetadata=host=%i";
        let web = unit("web@7.service", file, DesiredState::Loaded).expect("a good one");
        let asked = web.requirements();
        assert!(asked.machine_of.contains("web.socket"));
        assert!(asked.metadata["host"].contains("7"));
        assert_eq!(web.hash(), web.options().hash());
        assert_eq!(web.name().as_str(), "web@7.service");
    }

    #[test]
    fn what_contradicts_itself_does_not_come_in_and_stays_when_stored() {
        let file = "[X-Fleet]\nGlobal=true\nMachineID=a";
        let refused = unit("a.service", file, DesiredState::Inactive).expect_err(file);
        assert_eq!(refused.to_string(), "MachineID cannot be used with Global");
        let name = UnitName::parse("a.service").expect("a good name");
        let options = Options::parse(file.as_bytes()).expect("a good file");
        let stored = Unit::stored(name, options, DesiredState::Launched);
        assert!(stored.requirements().is_global);
    }
}

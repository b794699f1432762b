//! What is known of units and machines beside what the decisions keep: what is needed to write, and to tell what may
//! be decided about.

use std::collections::BTreeMap;

use crate::keys::Revision;
use crate::registry::{Body, Label, Machine, Place, Run, Stored, Want, Why, is_part, overlay};
use hyperfleet_fleet_model::schedule::MachineId;
use hyperfleet_fleet_model::unit::{DesiredState, NameParts, Requirements};

/// One unit, as far as it was seen.
#[derive(Debug, Default)]
pub(super) struct KnownUnit {
    pub(super) file: Option<File>,
    pub(super) want: Option<Stored<Want>>,
    pub(super) place: Option<KnownPlace>,
    pub(super) why: Option<Why>,
}

/// What decisions and agents need of a unit's file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) requirements: Requirements,
    hash: String,
}

/// Where a unit is placed.
#[derive(Debug)]
pub(super) struct KnownPlace {
    pub(super) machine: MachineId,
    pub(super) revision: Revision,
}

impl File {
    pub(super) fn of(name: &str, body: &Body) -> Self {
        Self {
            requirements: body.requirements(name),
            hash: body.hash.clone(),
        }
    }
}

impl KnownPlace {
    /// None if the machine it names can be none: then it is not ours to change.
    pub(super) fn of(place: &Stored<Place>) -> Option<Self> {
        is_part(&place.value.machine).then(|| Self {
            machine: MachineId::new(place.value.machine.as_str()),
            revision: place.revision,
        })
    }
}

impl KnownUnit {
    /// Whether nothing is known of it any more.
    pub(super) fn is_nothing(&self) -> bool {
        let Self {
            file,
            want,
            place,
            why,
        } = self;
        file.is_none() && want.is_none() && place.is_none() && why.is_none()
    }

    /// What is wanted of it, as far as it can be: a template runs nowhere, whatever somebody has written.
    pub(super) fn desired(&self, name: &str) -> Option<DesiredState> {
        let state = self.want.as_ref()?.value.state;
        let is_template = NameParts::of(name).is_some_and(|parts| parts.is_template());
        Some(if is_template {
            DesiredState::Inactive
        } else {
            state
        })
    }

    /// What its machine has to do, and the revision of what is wanted that says so.
    pub(super) fn run(&self) -> Option<(Run, Revision)> {
        let (file, want) = (self.file.as_ref()?, self.want.as_ref()?);
        let run = Run {
            hash: file.hash.clone(),
            state: want.value.state,
        };
        Some((run, want.revision))
    }
}

/// One machine: what its agent says of it while it is there, and what was said of it later.
#[derive(Debug, Default)]
pub(super) struct KnownMachine {
    pub(super) configured: Option<Machine>,
    pub(super) labels: BTreeMap<String, Label>,
}

impl KnownMachine {
    pub(super) fn is_nothing(&self) -> bool {
        self.configured.is_none() && self.labels.is_empty()
    }

    /// Its metadata as one; none if it is not there.
    pub(super) fn metadata(&self) -> Option<BTreeMap<String, String>> {
        let mut metadata = self.configured.as_ref()?.metadata.clone();
        for (key, label) in &self.labels {
            overlay(&mut metadata, key, label);
        }
        Some(metadata)
    }
}

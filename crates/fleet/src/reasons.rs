//! Why a unit has no machine, or cannot leave one, for users: computed when it is asked for, by the rules that place units.

use std::fmt::{self, Write as _};

use hyperfleet_fleet_model::schedule::{Cluster, Explanation};
use hyperfleet_fleet_model::wire::RefusalView;

const REASON_BYTES_MAX: usize = 4096;
const REQUIREMENT_BYTES_MAX: usize = 512;
/// Most requirements that a reason lists separately.
const REFUSALS_MAX: usize = 32;

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Why {
    /// Whether nothing happens until a machine, a unit or its file changes.
    pub(super) is_blocked: bool,
    /// The full text, for people.
    pub(super) reason: String,
    /// How many machines refuse for which requirement; empty if the reason is another.
    pub(super) refusals: Vec<RefusalView>,
}

impl Why {
    /// Why a unit needs another machine than it has, and has none; `None` if it does not. Takes time in proportion to
    /// the machines.
    pub(super) fn of(cluster: &Cluster, unit: &str) -> Option<Self> {
        let explanation = cluster.explain(unit)?;
        let groups = match &explanation {
            Explanation::Refused(groups) => groups.as_slice(),
            Explanation::NoMachines
            | Explanation::Cycle(_)
            | Explanation::WaitsFor(_)
            | Explanation::Stopping(_)
            | Explanation::Tied(_)
            | Explanation::NotYet(_) => &[],
        };
        let refusals = groups.iter().take(REFUSALS_MAX).map(|group| RefusalView {
            count: u64::try_from(group.count).unwrap_or(u64::MAX),
            machines: group.machines.iter().copied().map(str::to_owned).collect(),
            requirement: shortened(&group.refusal, REQUIREMENT_BYTES_MAX),
        });
        Some(Self {
            is_blocked: !matches!(
                explanation,
                Explanation::Stopping(_) | Explanation::NotYet(_)
            ),
            reason: shortened(&explanation, REASON_BYTES_MAX),
            refusals: refusals.collect(),
        })
    }

    /// A reason that needs no change elsewhere.
    pub(super) fn passing(reason: String) -> Self {
        Self {
            is_blocked: false,
            reason,
            refusals: Vec::new(),
        }
    }
}

/// The beginning of a text, without formatting the rest: thousands of units may follow each other in a circle.
fn shortened(text: &impl fmt::Display, bytes_max: usize) -> String {
    let mut beginning = Beginning {
        text: String::new(),
        bytes_max,
    };
    if write!(beginning, "{text}").is_err() {
        beginning.text.push('…');
    }
    beginning.text
}

struct Beginning {
    text: String,
    bytes_max: usize,
}

impl fmt::Write for Beginning {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.bytes_max - self.text.len();
        let fits = more.floor_char_boundary(room);
        self.text.push_str(&more[..fits]);
        if fits < more.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfleet_fleet_model::schedule::{ClusterChange, Job, Machine, MachineId};
    use hyperfleet_fleet_model::unit::{DesiredState, Requirements, UnitName};

    #[test]
    fn a_reason_has_an_end() {
        let mut cluster = Cluster::new();
        let machine = Machine::new(MachineId::new("m1"), std::collections::BTreeMap::new());
        cluster.apply(ClusterChange::Machine(machine));
        let name = |number: usize| format!("a-unit-with-a-name-{number}.service");
        for number in 0..1_000 {
            let asked = Requirements {
                machine_of: [name((number + 1) % 1_000)].into(),
                ..Requirements::default()
            };
            let unit = UnitName::stored(name(number).as_str());
            let job = Job::new(unit, asked, DesiredState::Launched, None);
            cluster.apply(ClusterChange::Unit(job));
        }
        let why = Why::of(&cluster, &name(0)).unwrap();
        let (reason, begin) = (why.reason, format!("follows itself: {} → ", name(0)));
        assert!(reason.starts_with(&begin), "{reason}");
        let length = reason.len();
        assert!(reason.ends_with('…') && length < 4_200, "{length}");
        assert!(why.is_blocked && why.refusals.is_empty());
    }
}

//! Which options may stand together: run when a unit is created and when it is replaced (facts:
//! reference fleet §3; the older server let a replacement pass unlooked at).

use super::fleet_section::FleetSection;
use super::glob::Glob;
use super::options::Options;
use super::requirements::Requirements;
use crate::shown;

/// Most that a unit may say in `[X-Fleet]`, in bytes of values. Each pattern is held against the
/// names of other units, and each specifier may become a name of 256 bytes.
pub const REQUIREMENTS_BYTES_MAX: usize = 8 * 1024;

/// Why no machine could do what a unit asks for. The words are those of the older server, where it
/// has the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// The unit is to be beside another and not beside it.
    #[error("unresolvable requirements: peer {peer:?} matches conflict {:?}", .conflict.as_str())]
    PeerConflicts {
        /// The other unit.
        peer: String,
        /// The pattern that it matches.
        conflict: Glob,
    },
    /// The unit is to be beside another and pushes it away.
    #[error("unresolvable requirements: peer {peer:?} matches replace {:?}", .replace.as_str())]
    PeerReplaced {
        /// The other unit.
        peer: String,
        /// The pattern that it matches.
        replace: Glob,
    },
    /// Two options that exclude each other.
    #[error("{0} cannot be used with {1}")]
    Together(&'static str, &'static str),
    /// Metadata that says nothing.
    #[error("invalid MachineMetadata {0:?}: expect key=value, several of them each in quotes")]
    Metadata(String),
    /// It says too much.
    #[error("more than {REQUIREMENTS_BYTES_MAX} bytes of values in section X-Fleet")]
    TooLarge,
}

/// Whether what the options ask for can be meant. The unit's name plays no part: specifiers are
/// compared as they stand.
///
/// # Errors
///
/// The first rule that is broken: how much there is, then what the older server looked at in its
/// order, then what is ours.
pub fn check(options: &Options) -> Result<(), Contradiction> {
    let section = FleetSection::of(options.list());
    if section.bytes() > REQUIREMENTS_BYTES_MAX {
        return Err(Contradiction::TooLarge);
    }
    let requirements = section.requirements(None);
    peers_may_stay(&requirements)?;
    options_may_meet(&requirements)?;
    match section.malformed_metadata() {
        Some(value) => Err(Contradiction::Metadata(shown(value))),
        None => Ok(()),
    }
}

fn peers_may_stay(requirements: &Requirements) -> Result<(), Contradiction> {
    for peer in &requirements.machine_of {
        let hit = |globs: &[Glob]| globs.iter().find(|glob| glob.matches(peer)).cloned();
        if let Some(conflict) = hit(&requirements.conflicts) {
            let peer = peer.clone();
            return Err(Contradiction::PeerConflicts { peer, conflict });
        }
        if let Some(replace) = hit(&requirements.replaces) {
            let peer = peer.clone();
            return Err(Contradiction::PeerReplaced { peer, replace });
        }
    }
    Ok(())
}

fn options_may_meet(requirements: &Requirements) -> Result<(), Contradiction> {
    let machine_id = ("MachineID", requirements.machine_id.is_some());
    let peers = ("Peers", !requirements.machine_of.is_empty());
    let conflicts = ("Conflicts", !requirements.conflicts.is_empty());
    let replaces = ("Replaces", !requirements.replaces.is_empty());
    let global = ("Global", requirements.is_global);
    let singleton = ("Singleton", requirements.is_singleton);
    for ((one, is_one), (other, is_other)) in [
        (machine_id, peers),
        (machine_id, conflicts),
        (machine_id, global),
        (machine_id, replaces),
        (global, peers),
        (global, replaces),
        (conflicts, replaces),
        (global, singleton),
    ] {
        if is_one && is_other {
            return Err(Contradiction::Together(one, other));
        }
    }
    Ok(())
}

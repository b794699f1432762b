//! Which options exclude each other. Checked when a unit is created and when it is replaced; the older server
//! did not check replacements.

use super::fleet_section::FleetSection;
use super::glob::Glob;
use super::options::Options;
use super::requirements::Requirements;
use crate::shown;

/// Most bytes of values in `[X-Fleet]`. Each pattern is matched against the names of other units, and each
/// specifier may become a name of 255 bytes.
pub const REQUIREMENTS_BYTES_MAX: usize = 8 * 1024;

/// Why no machine could meet a unit's requirements, in the older server's words where it has the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// The unit must be beside another and excludes it.
    #[error("unresolvable requirements: peer {peer:?} matches conflict {:?}", .conflict.as_str())]
    PeerConflicts {
        peer: String,
        /// The pattern that matches it.
        conflict: Glob,
    },
    /// The unit must be beside another and replaces it.
    #[error("unresolvable requirements: peer {peer:?} matches replace {:?}", .replace.as_str())]
    PeerReplaced {
        peer: String,
        /// The pattern that matches it.
        replace: Glob,
    },
    /// Two options that exclude each other.
    #[error("{0} cannot be used with {1}")]
    Together(&'static str, &'static str),
    #[error("invalid MachineMetadata {0:?}: expect key=value, several of them each in quotes")]
    Metadata(String),
    #[error("more than {REQUIREMENTS_BYTES_MAX} bytes of values in section X-Fleet")]
    TooLarge,
}

/// Whether the options can be met. The unit's name is ignored: specifiers are compared as they are written.
///
/// # Errors
/// The first broken rule: first the size, then the older server's rules in its order, then ours.
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

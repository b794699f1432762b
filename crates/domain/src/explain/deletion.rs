//! What blocks a deletion: children, and references from outside the family.

use std::collections::HashMap;

use super::words::{because, counted, since};
use super::{
    Blockers, DESCENDANTS_MAX, Descendant, ExplainInput, Kin, LEVELS_MAX, REFERRERS_MAX,
    SourceOfReference,
};
use crate::moment::rfc3339;
use crate::{Condition, ConditionStatus, ResourceId};

/// Why a DELETE would be refused, or a finalizing resource is not removed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedDeletion {
    /// Of a finalizing resource all descendants, of an active one the active descendants whose kinds restrict.
    pub children: Blockers<BlockingChild>,
    /// The active resources that reference the active ones of the family.
    pub referrers: Blockers<BlockingReferrer>,
    /// Whether anything blocks it.
    pub is_blocked: bool,
    pub sentence: String,
}

/// A descendant that blocks a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingChild {
    pub descendant: Descendant,
    pub sentence: String,
}

/// A resource that blocks a deletion by a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingReferrer {
    pub source: SourceOfReference,
    /// The target, if the caller sees it.
    pub target: Option<Kin>,
    pub sentence: String,
}

impl AsRef<Kin> for BlockingChild {
    fn as_ref(&self) -> &Kin {
        &self.descendant.kin
    }
}

impl AsRef<Kin> for BlockingReferrer {
    fn as_ref(&self) -> &Kin {
        &self.source.kin
    }
}

/// `waits_for_adapters`: a finalizing resource does, which blocks its removal.
pub(super) fn blocked(input: &ExplainInput<'_>, waits_for_adapters: bool) -> BlockedDeletion {
    let children = children(input);
    let referrers = referrers(input);
    let is_blocked = children.total > 0
        || if input.snapshot.state.is_finalizing() {
            waits_for_adapters
        } else {
            referrers.total > 0
        };
    BlockedDeletion {
        is_blocked,
        sentence: sentence(input, &children, &referrers, is_blocked),
        children,
        referrers,
    }
}

fn children(input: &ExplainInput<'_>) -> Blockers<BlockingChild> {
    let all = &input.surroundings.descendants;
    let state = &input.snapshot.state;
    let mut kinds: HashMap<_, _> = all
        .iter()
        .map(|d| (d.kin.id, d.kin.kind.as_str()))
        .collect();
    kinds.insert(state.id, state.kind.as_str());
    let restricts = |child: &Descendant| {
        let owner = child.kin.owner.and_then(|owner| kinds.get(&owner));
        let is_restricting = owner.is_some_and(|o| input.registry.restricts(o, &child.kin.kind));
        child.deleted_at.is_none() && is_restricting
    };
    let read = all.iter().take(DESCENDANTS_MAX);
    let blocks = read.filter(|child| state.is_finalizing() || restricts(child));
    let (mut seen, unseen): (Vec<_>, Vec<_>) = blocks.partition(|child| child.is_seen);
    seen.sort_by(|a, b| (a.level, &a.kin).cmp(&(b.level, &b.kin)));
    let seen = seen.into_iter().map(|child| BlockingChild {
        descendant: child.clone(),
        sentence: of_child(input, child),
    });
    Blockers::new(seen.collect(), unseen.len(), is_partial(all))
}

/// Whether there may be more descendants than were read.
fn is_partial(descendants: &[Descendant]) -> bool {
    let is_deepest = |descendant: &Descendant| descendant.level >= LEVELS_MAX;
    descendants.len() > DESCENDANTS_MAX || descendants.iter().any(is_deepest)
}

fn of_child(input: &ExplainInput<'_>, child: &Descendant) -> String {
    let name = child.kin.quoted();
    let Some(deleted_at) = child.deleted_at else {
        let state = if input.snapshot.state.is_finalizing() {
            "although the resource above it is finalizing"
        } else {
            "and its kind restricts the deletion of its parent: delete it first"
        };
        return format!("{name} is active, {state}.");
    };
    let unreconciled = |c: &&Condition| c.status == ConditionStatus::False;
    let why = child.reconciled.as_ref().filter(unreconciled);
    let why = why.map_or_else(String::new, |c| because(None, c.message.as_deref()));
    let since = since(deleted_at, input.now);
    format!("{name} is finalizing {since}{}.", why.trim_end_matches('.'))
}

fn referrers(input: &ExplainInput<'_>) -> Blockers<BlockingReferrer> {
    let state = &input.snapshot.state;
    let descendants = &input.surroundings.descendants;
    let of_id: HashMap<ResourceId, &Descendant> =
        descendants.iter().map(|d| (d.kin.id, d)).collect();
    // A finalizing resource is no longer referenced, and a DELETE of its owner does not check for references to it.
    let is_checked = |source: &&SourceOfReference| {
        if source.target == state.id {
            !state.is_finalizing()
        } else {
            of_id
                .get(&source.target)
                .is_some_and(|d| d.deleted_at.is_none())
        }
    };
    let all = &input.surroundings.referrers;
    let read = all.iter().take(REFERRERS_MAX);
    let mut blocking: Vec<_> = read
        .filter(is_checked)
        .filter(|source| !source.is_inside)
        .collect();
    let order = |s: &SourceOfReference| (s.kin.clone(), s.ref_type.clone(), s.target);
    blocking.sort_by_key(|source| order(source));
    blocking.dedup_by_key(|source| order(source));
    let (seen, unseen): (Vec<_>, Vec<_>) = blocking.into_iter().partition(|s| s.is_seen);
    let seen = seen.into_iter().map(|source| {
        let below = of_id.get(&source.target).copied();
        let target = match below {
            None => Some(Kin::of(state)),
            Some(below) => Some(below.kin.clone()).filter(|_| below.is_seen),
        };
        BlockingReferrer {
            source: source.clone(),
            target,
            sentence: of_referrer(source, below),
        }
    });
    let is_partial = all.len() > REFERRERS_MAX || is_partial(descendants);
    Blockers::new(seen.collect(), unseen.len(), is_partial)
}

/// `below` is the target, if it is a descendant.
fn of_referrer(source: &SourceOfReference, below: Option<&Descendant>) -> String {
    let target = match below {
        None => "the resource".to_owned(),
        Some(target) if target.is_seen => format!("{} below it", target.kin.quoted()),
        Some(_) => "a resource below it".to_owned(),
    };
    let (name, ref_type) = (source.kin.quoted(), &source.ref_type);
    format!("{name} references {target} as \"{ref_type}\": remove the reference first.")
}

fn sentence(
    input: &ExplainInput<'_>,
    children: &Blockers<BlockingChild>,
    referrers: &Blockers<BlockingReferrer>,
    is_blocked: bool,
) -> String {
    if let Some(deletion) = &input.snapshot.state.deletion {
        let at = rfc3339(deletion.at);
        let end = if is_blocked {
            "the resource is removed when it no longer waits for anything"
        } else {
            "nothing prevents the removal: repeat the DELETE"
        };
        return format!("The deletion was requested at {at}; {end}.");
    }
    let mut blockers = Vec::new();
    if children.total > 0 {
        let many = counted(children, "active descendant");
        blockers.push(format!("{many} must be deleted first"));
    }
    if referrers.total > 0 {
        let many = counted(referrers, "reference");
        blockers.push(format!("{many} must be removed first"));
    }
    if blockers.is_empty() {
        let part = if children.is_partial || referrers.is_partial {
            " among the resources that were checked; there are more"
        } else {
            ""
        };
        return format!("Nothing prevents a DELETE{part}.");
    }
    format!("A DELETE is refused: {}.", blockers.join(", and "))
}

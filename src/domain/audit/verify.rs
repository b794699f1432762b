//! Compares entries with their seals, in the order of the trail. Keeps a few values for each tenancy, and no entries.
//!
//! ```text
//! expect(seal)   before the entries: what they are hashed after, and where an unknown chain begins
//! entry, entry … the entries of a pass
//! seal, seal …   the seals of the pass
//! ```

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::pass::PassHasher;
use super::seal::ChainHasher;
use super::{
    ChainHash, ChainHead, EntryRecord, Seal, TrailFault, TrailFaultKind, TrailFaults, TrailPosition,
};
use crate::domain::Tenancy;

/// The verified part of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedChain {
    pub first: SealStamp,
    pub last: SealStamp,
    /// Entries that were found, sealed or not.
    pub entries: u64,
}

/// Number and time of a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealStamp {
    pub number: i64,
    pub sealed_at: DateTime<Utc>,
}

/// What was verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedTrail {
    pub chains: BTreeMap<Tenancy, VerifiedChain>,
    pub faults: TrailFaults,
    /// Entries after the last seal, and the time of the oldest one.
    pub unsealed: UnsealedEntries,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsealedEntries {
    pub count: u64,
    pub oldest_at: Option<DateTime<Utc>>,
}

impl UnsealedEntries {
    fn add(&mut self, at: DateTime<Utc>) {
        self.count += 1;
        self.oldest_at = Some(self.oldest_at.map_or(at, |oldest| oldest.min(at)));
    }
}

/// Where a verification begins, and what it sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedRange {
    /// The end of the pass before the first one; unset if it is unknown.
    pub begin: Option<TrailPosition>,
    /// The digest of that pass; unset if it is unknown.
    pub pass_hash: Option<ChainHash>,
    /// The ends of the chains there. A chain without one begins with number 1, or, if `is_within`, with any number.
    pub heads: BTreeMap<Tenancy, ChainHead>,
    /// Whether there may be earlier seals.
    pub is_within: bool,
    /// Whether only some tenancies are seen: then passes and seals of passes may be missing.
    pub is_partial: bool,
}

/// A verification in progress.
#[derive(Debug)]
pub struct TrailVerifier {
    range: VerifiedRange,
    /// End of the pass before,
    boundary: Option<TrailPosition>,
    /// and its digest.
    pass_hash: Option<ChainHash>,
    chains: BTreeMap<Tenancy, ChainState>,
    pass: Pass,
    last: Option<TrailPosition>,
    faults: TrailFaults,
}

#[derive(Debug, Default)]
struct ChainState {
    head: ChainHead,
    verified: Option<VerifiedChain>,
}

/// The pass in progress.
#[derive(Debug, Default)]
struct Pass {
    groups: BTreeMap<Tenancy, Group>,
    /// Previous hashes of its seals, where they are known before.
    previous: BTreeMap<Tenancy, ChainHash>,
    newest_at: Option<DateTime<Utc>>,
    tail: UnsealedEntries,
    /// Its first seal; unset before the seals.
    seal: Option<Seal>,
    /// Takes all seals.
    hasher: PassHasher,
}

/// The entries of a tenancy in the pass.
#[derive(Debug)]
struct Group {
    hasher: ChainHasher,
    end: TrailPosition,
}

impl TrailVerifier {
    pub fn new(range: VerifiedRange) -> Self {
        let head = |(tenancy, head): (&Tenancy, &ChainHead)| {
            let state = ChainState {
                head: *head,
                verified: None,
            };
            (tenancy.clone(), state)
        };
        Self {
            boundary: range.begin,
            pass_hash: range.pass_hash,
            chains: range.heads.iter().map(head).collect(),
            range,
            pass: Pass::default(),
            last: None,
            faults: TrailFaults::default(),
        }
    }

    /// Announces the next seal of a chain, before its entries.
    pub fn expect(&mut self, seal: &Seal) {
        let Self {
            range,
            chains,
            pass,
            ..
        } = self;
        if range.is_within {
            chains
                .entry(seal.tenancy.clone())
                .or_insert_with(|| ChainState {
                    head: ChainHead {
                        number: seal.number - 1,
                        hash: seal.previous,
                    },
                    verified: None,
                });
        }
        pass.previous.insert(seal.tenancy.clone(), seal.previous);
    }

    /// Takes the next entry. `line` is its text.
    pub fn entry(&mut self, entry: &EntryRecord, line: &str) {
        if self.pass.seal.is_some() {
            self.close_pass();
        }
        let EntryRecord {
            position,
            tenancy,
            at,
        } = entry;
        if self.last.is_some_and(|last| last >= *position) {
            self.faults.push(TrailFault {
                kind: TrailFaultKind::Order,
                tenancy: tenancy.clone(),
                number: None,
                begin: *position,
                end: *position,
            });
        }
        self.last = Some(*position);
        let pass = &mut self.pass;
        if !pass.groups.contains_key(tenancy) {
            let previous = pass.previous.get(tenancy).copied();
            let head = self.chains.get(tenancy).map(|chain| chain.head.hash);
            let previous = previous.or(head).unwrap_or(ChainHash::ZERO);
            let group = Group {
                hasher: ChainHasher::after(previous),
                end: *position,
            };
            pass.groups.insert(tenancy.clone(), group);
        }
        if let Some(group) = pass.groups.get_mut(tenancy) {
            group.hasher.add(line);
            group.end = *position;
        }
        pass.newest_at = pass.newest_at.max(Some(*at));
        pass.tail.add(*at);
    }

    /// Takes a line that cannot be read.
    pub fn unreadable(&mut self, line: u64) {
        let position = self.last.unwrap_or(TrailPosition::START);
        self.faults.push(TrailFault {
            kind: TrailFaultKind::Unreadable { line },
            tenancy: Tenancy::new(),
            number: None,
            begin: position,
            end: position,
        });
    }

    /// Takes the next seal, after the entries of its pass.
    pub fn seal(&mut self, seal: &Seal) {
        let is_other = |first: &Seal| first.end != seal.end;
        if self.pass.seal.as_ref().is_some_and(is_other) {
            self.close_pass();
        }
        self.check_pass(seal);
        self.pass.hasher.add(seal);
        let chain = self.chains.entry(seal.tenancy.clone()).or_default();
        let expected = chain.head.number + 1;
        if seal.number != expected {
            let kind = TrailFaultKind::Number { expected };
            self.faults.push(kind.of(seal));
        } else if seal.previous != chain.head.hash {
            self.faults.push(TrailFaultKind::Link.of(seal));
        }
        self.pass.previous.remove(&seal.tenancy);
        let group = self.pass.groups.remove(&seal.tenancy);
        let found = group.as_ref().map_or(0, |group| group.hasher.entries);
        if found != seal.entries {
            let sealed = seal.entries;
            let kind = TrailFaultKind::Entries { found, sealed };
            self.faults.push(kind.of(seal));
        } else if group.is_some_and(|group| group.hasher.finish() != seal.hash) {
            self.faults.push(TrailFaultKind::Hash.of(seal));
        }
        // What was stored, so that a fault does not show in every later seal, too.
        chain.head = seal.head();
        let stamp = SealStamp {
            number: seal.number,
            sealed_at: seal.sealed_at,
        };
        let verified = chain.verified.get_or_insert(VerifiedChain {
            first: stamp,
            last: stamp,
            entries: 0,
        });
        verified.last = stamp;
        verified.entries += u64::try_from(found).unwrap_or_default();
    }

    /// Checks what all seals of a pass have in common.
    fn check_pass(&mut self, seal: &Seal) {
        let pass = &mut self.pass;
        if let Some(first) = &pass.seal {
            if shared(first) != shared(seal) {
                self.faults.push(TrailFaultKind::Uneven.of(seal));
            }
            return;
        }
        if !self.range.is_partial {
            if let Some(ended) = self.boundary.filter(|end| *end != seal.begin) {
                self.faults.push(TrailFaultKind::Gap { ended }.of(seal));
            }
            let entries = pass.newest_at.zip(self.last);
            if entries.is_some_and(|found| found != (seal.newest_at, seal.end)) {
                self.faults.push(TrailFaultKind::Bounds.of(seal));
            }
        }
        // The passes between two seals of one tenancy are not in its export.
        let is_next = !self.range.is_partial || self.boundary == Some(seal.begin);
        let is_other = |before| before != seal.pass_previous;
        if is_next && self.pass_hash.is_some_and(is_other) {
            self.faults.push(TrailFaultKind::PassLink.of(seal));
        }
        pass.seal = Some(seal.clone());
    }

    /// Ends the pass whose seals have been read.
    fn close_pass(&mut self) {
        let pass = std::mem::take(&mut self.pass);
        let begin = self.boundary.unwrap_or(TrailPosition::START);
        for (tenancy, group) in pass.groups {
            let entries = group.hasher.entries;
            self.faults.push(TrailFault {
                kind: TrailFaultKind::Unsealed { entries },
                tenancy,
                number: None,
                begin,
                end: group.end,
            });
        }
        // Announced for a later pass, if this one has no seal of the tenancy.
        self.pass.previous = pass.previous;
        if let Some(seal) = pass.seal {
            if !self.range.is_partial && pass.hasher.finish() != seal.pass_hash {
                self.faults.push(TrailFaultKind::Pass.of(&seal));
            }
            self.boundary = Some(seal.end);
            self.pass_hash = Some(seal.pass_hash);
        }
    }

    /// Ends the verification. Entries after the last seal are not faults: they wait to be sealed.
    pub fn finish(mut self) -> VerifiedTrail {
        if self.pass.seal.is_some() {
            self.close_pass();
        }
        let chains = self.chains.into_iter();
        VerifiedTrail {
            chains: chains
                .filter_map(|(tenancy, chain)| Some((tenancy, chain.verified?)))
                .collect(),
            faults: self.faults,
            unsealed: self.pass.tail,
        }
    }
}

/// What all seals of a pass have in common.
fn shared(seal: &Seal) -> impl PartialEq + use<> {
    let times = (seal.newest_at, seal.sealed_at);
    (seal.begin, times, seal.pass_previous, seal.pass_hash)
}

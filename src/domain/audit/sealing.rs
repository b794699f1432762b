//! Seals entries: divides them into passes, and computes the hashes of their seals.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::pass::pass_hash;
use super::seal::ChainHasher;
use super::{ChainHash, ChainHead, PassHead, Seal, TrailEntry};
use crate::domain::Tenancy;

/// Longest time between the first entry of a pass and each other one. Retention removes whole passes, so this is how much
/// longer than configured it may keep an entry.
const PASS_SPAN_MAX: TimeDelta = TimeDelta::days(1);

/// Seals all of these entries, which follow the last pass in the order of the trail, in one or more passes. `heads` has the
/// ends of the chains, which are moved on; a tenancy without one begins its chain.
pub fn seal_all(
    entries: &[TrailEntry],
    mut last: PassHead,
    heads: &mut BTreeMap<Tenancy, ChainHead>,
    sealed_at: DateTime<Utc>,
) -> Vec<Seal> {
    let mut seals = Vec::new();
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let is_near = |entry: &TrailEntry| {
            let distance = entry.entry.origin.at - first.entry.origin.at;
            distance.abs() <= PASS_SPAN_MAX
        };
        let length = rest.iter().position(|entry| !is_near(entry));
        let (pass, later) = rest.split_at(length.unwrap_or(rest.len()));
        let sealed = seal_pass(pass, last, heads, sealed_at);
        last = sealed.first().map_or(last, Seal::pass);
        seals.extend(sealed);
        rest = later;
    }
    seals
}

fn seal_pass(
    pass: &[TrailEntry],
    before: PassHead,
    heads: &mut BTreeMap<Tenancy, ChainHead>,
    sealed_at: DateTime<Utc>,
) -> Vec<Seal> {
    let mut hashers = BTreeMap::<&Tenancy, ChainHasher>::new();
    for entry in pass {
        let tenancy = &entry.entry.tenancy;
        let previous = || heads.get(tenancy).copied().unwrap_or_default().hash;
        let hasher = hashers.entry(tenancy);
        let hasher = hasher.or_insert_with(|| ChainHasher::after(previous()));
        hasher.add(&entry.line());
    }
    let newest_at = pass.iter().map(|entry| entry.entry.origin.at).max();
    let last = pass.last().zip(newest_at);
    let Some((last, newest_at)) = last else {
        return Vec::new();
    };
    let seal = |(tenancy, hasher): (&Tenancy, ChainHasher)| {
        let head = heads.entry(tenancy.clone()).or_default();
        let (previous, entries) = (head.hash, hasher.entries);
        *head = ChainHead {
            number: head.number + 1,
            hash: hasher.finish(),
        };
        Seal {
            tenancy: tenancy.clone(),
            number: head.number,
            begin: before.end,
            end: last.position,
            entries,
            newest_at,
            previous,
            hash: head.hash,
            sealed_at,
            pass_previous: before.hash,
            pass_hash: ChainHash::ZERO,
        }
    };
    let mut seals: Vec<_> = hashers.into_iter().map(seal).collect();
    let hash = pass_hash(&seals);
    for seal in &mut seals {
        seal.pass_hash = hash;
    }
    seals
}

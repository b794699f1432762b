//! Divides entries into passes, and links these to the chain.

use chrono::{DateTime, TimeDelta, Utc};

use super::tree::Tree;
use super::{AuditEntry, Hash, Link, Pass, TrailPosition};

/// Longest time between the first entry of a pass and each other one. Retention removes entire passes, so this is how
/// much longer than configured it may keep an entry.
const PASS_SPAN_MAX: TimeDelta = TimeDelta::days(1);

/// Seals all of these entries, which follow the last link in the order of the trail, in one or more passes. Without a last
/// link the chain begins with its origin.
pub fn seal(entries: &[AuditEntry], last: Option<&Link>, sealed_at: DateTime<Utc>) -> Vec<Link> {
    let mut head = last.cloned().unwrap_or_else(|| origin(sealed_at));
    let is_first = last.is_none() && !entries.is_empty();
    let mut links = Vec::from_iter(is_first.then(|| head.clone()));
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let is_far = |entry: &AuditEntry| (entry.at - first.at).abs() > PASS_SPAN_MAX;
        let length = rest.iter().position(is_far).unwrap_or(rest.len());
        let (pass, later) = rest.split_at(length);
        head = next(&head, pass, sealed_at);
        links.push(head.clone());
        rest = later;
    }
    links
}

/// The link before the first pass, which covers nothing.
fn origin(sealed_at: DateTime<Utc>) -> Link {
    let pass = Pass {
        end: TrailPosition::START,
        entries: 0,
        newest_at: DateTime::UNIX_EPOCH,
        number: 0,
        previous: Hash::ZERO,
        root: Tree::new(Vec::new()).root(),
        sealed_at,
    };
    pass.link()
}

fn next(before: &Link, entries: &[AuditEntry], sealed_at: DateTime<Utc>) -> Link {
    let times = entries.iter().map(|entry| entry.at);
    let last = entries.last().map(|entry| entry.position);
    let pass = Pass {
        end: last.unwrap_or(before.pass.end),
        entries: i32::try_from(entries.len()).unwrap_or(i32::MAX),
        newest_at: times.fold(before.pass.newest_at, Ord::max),
        number: before.pass.number + 1,
        previous: before.hash,
        root: Tree::new(entries.iter().map(AuditEntry::hash).collect()).root(),
        sealed_at,
    };
    pass.link()
}

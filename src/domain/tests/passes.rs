//! Digests of passes find what the chains of the tenancies alone do not, and removals have their age.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use proptest::prelude::*;

use super::given::at;
use super::seals::{Line, batches, entry, sealed, tenancy, verified_in, whole_range};
use crate::domain::Tenancy;
use crate::domain::audit::{
    ChainHash, PassHead, RETENTION_MIN, RemovedPart, RemovedSeal, RetentionRule, Seal, TrailFault,
    VerifiedRange, seal_all,
};

type Named = (&'static str, Option<i64>);

fn names(faults: &[TrailFault]) -> Vec<Named> {
    let named = |fault: &TrailFault| (fault.kind.name(), fault.number);
    faults.iter().map(named).collect()
}

fn faults(lines: &[Line]) -> Vec<Named> {
    names(&verified_in(whole_range(), lines).faults.first)
}

fn is_of(line: &Line, of: &Tenancy) -> bool {
    match line {
        Line::Entry(entry) => entry.entry.tenancy == *of,
        Line::Seal(seal) => seal.tenancy == *of,
    }
}

/// Three passes of `a` and `b`.
fn three() -> Vec<Line> {
    sealed(&[
        vec![entry("a", 1, 1, 0), entry("b", 1, 2, 0)],
        vec![entry("a", 2, 3, 0), entry("b", 2, 4, 0)],
        vec![entry("a", 3, 5, 0), entry("b", 3, 6, 0)],
    ])
}

/// Computed by Python from the texts of the seals that `hashes_are_those_that_another_program_computes` has.
#[test]
fn digests_are_those_that_another_program_computes() {
    let entries = [entry("acme", 7, 1, 0), entry("acme", 9, 2, 1)];
    let mut heads = BTreeMap::new();
    let first = seal_all(&entries[..1], PassHead::default(), &mut heads, at(9));
    let second = seal_all(&entries[1..], first[0].pass(), &mut heads, at(9));
    assert_eq!(first[0].pass_previous, ChainHash::ZERO);
    assert_eq!(
        first[0].pass_hash.to_string(),
        "b69d6e18662998d014ffad501343ec6b19eeac5cbbcef417091b1e22f3aa448d"
    );
    assert_eq!(second[0].pass_previous, first[0].pass_hash);
    assert_eq!(
        second[0].pass_hash.to_string(),
        "e809e0ebbec85fd1b0d3751c40f17988e4270cb5f8bbd6bf5f1413b7a6f79f3c"
    );
}

/// Nothing else says which tenancies a pass had.
#[test]
fn the_newest_seals_of_one_tenancy_are_missed() {
    let whole = three();
    assert_eq!(faults(&whole), []);
    for (kept, expected) in [
        (8, &[("pass", Some(3))][..]),
        (4, &[("pass", Some(2)), ("pass", Some(3))]),
    ] {
        let (before, after) = whole.split_at(kept);
        let after = after.iter().filter(|line| !is_of(line, &tenancy("b")));
        // The pass ends with an entry of the tenancy that is removed: so its seal must say so, too.
        let lines: Vec<_> = before.iter().chain(after).cloned().collect();
        let found = faults(&lines);
        let found: Vec<_> = found
            .into_iter()
            .filter(|(kind, _)| *kind != "bounds")
            .collect();
        assert_eq!(found, expected, "after line {kept}");
    }
}

/// An entry of another tenancy, with a chain of its own.
#[test]
fn a_seal_that_was_added_is_found() {
    let mut lines = sealed(&[vec![entry("a", 1, 1, 0), entry("b", 1, 3, 0)]]);
    let Some(Line::Seal(last)) = lines.last().cloned() else {
        unreachable!("a pass ends with its seals")
    };
    let forged = entry("c", 1, 2, 0);
    let mut heads = BTreeMap::new();
    let alone = std::slice::from_ref(&forged);
    let seals = seal_all(alone, PassHead::default(), &mut heads, last.sealed_at);
    let seal = Seal {
        end: last.end,
        pass_hash: last.pass_hash,
        ..seals[0].clone()
    };
    lines.insert(1, Line::Entry(forged));
    lines.push(Line::Seal(seal));
    assert_eq!(faults(&lines), [("pass", Some(1))]);
}

/// The next pass says that it begins where the pass before the removed one ended, and the chain goes on by number.
#[test]
fn a_removed_pass_is_missed_by_the_next_one() {
    let mut lines = sealed(&[
        vec![entry("a", 1, 1, 0)],
        vec![entry("b", 2, 2, 0)],
        vec![entry("a", 3, 3, 0)],
    ]);
    lines.drain(2..4);
    assert_eq!(faults(&lines), [("gap", Some(2)), ("pass_link", Some(2))]);
    let Line::Seal(before) = lines[1].clone() else {
        unreachable!("a pass has one seal")
    };
    let Line::Seal(seal) = &mut lines[3] else {
        unreachable!("a pass has one seal")
    };
    seal.begin = before.end;
    assert_eq!(faults(&lines), [("pass_link", Some(2)), ("pass", Some(2))]);
}

/// A tenant has one seal of a pass, so it cannot compute digests; it sees that passes without another one between
/// them name each other.
#[test]
fn the_export_of_one_tenant_links_passes_that_follow_each_other() {
    let mut lines = sealed(&[
        vec![entry("a", 1, 1, 0), entry("b", 1, 2, 0)],
        vec![entry("a", 2, 3, 0), entry("b", 2, 4, 0)],
        vec![entry("b", 3, 5, 0)],
        vec![entry("a", 4, 6, 0)],
    ]);
    lines.retain(|line| is_of(line, &tenancy("a")));
    let range = || VerifiedRange {
        is_partial: true,
        ..VerifiedRange::default()
    };
    let found = |lines: &[Line]| names(&verified_in(range(), lines).faults.first);
    assert_eq!(found(&lines), []);
    let Line::Seal(first) = &mut lines[1] else {
        unreachable!("an entry, then its seal")
    };
    first.pass_hash.0[0] ^= 1;
    assert_eq!(found(&lines), [("pass_link", Some(2))]);
}

const DAY: i64 = 86_400;

/// The marks of a retention of 30 days that runs on the 41st day: on the seals of the first of two passes.
fn marked() -> (Vec<RemovedSeal>, Vec<Line>) {
    let lines = sealed(&[
        vec![entry("a", 1, 1, 0), entry("b", 1, 2, DAY / 2)],
        vec![entry("a", 2, 3, 20 * DAY), entry("b", 2, 4, 20 * DAY)],
    ]);
    let (first, second) = lines.split_at(4);
    let seals = first.iter().filter_map(|line| match line {
        Line::Seal(seal) => Some(RemovedSeal {
            seal: seal.clone(),
            removed_at: at(40 * DAY),
            removed_before: Some(at(10 * DAY)),
        }),
        Line::Entry(_) => None,
    });
    (seals.collect(), second.to_vec())
}

fn days(days: u64) -> Duration {
    Duration::from_hours(24 * days)
}

#[test]
fn what_is_left_follows_the_last_removed_pass() {
    let (marks, left) = marked();
    let removed: RemovedPart = marks.into_iter().collect();
    let range = |removed: &RemovedPart| VerifiedRange {
        begin: Some(removed.last_pass().end),
        pass_hash: Some(removed.last_pass().hash),
        heads: removed.heads(),
        ..VerifiedRange::default()
    };
    let verified = verified_in(range(&removed), &left);
    assert_eq!(verified.faults.first, []);
    assert_eq!(RemovedPart::default().last_pass(), PassHead::default());
}

#[test]
fn only_what_has_expired_may_be_removed() {
    type Change = fn(&mut RemovedSeal);
    let now = at(41 * DAY);
    let early = [("early", Some(1)), ("early", Some(1))];
    let keep: Change = |_| ();
    let cases: [(&str, Option<Duration>, Change, &[Named]); 7] = [
        ("the setting is unknown", None, keep, &[]),
        ("as configured", Some(days(30)), keep, &[]),
        ("shorter than configured", Some(days(50)), keep, &early),
        (
            "no mark of retention",
            None,
            |mark| mark.removed_before = None,
            &early,
        ),
        (
            "an entry of that time",
            None,
            |mark| mark.removed_before = Some(at(DAY / 2)),
            &early,
        ),
        (
            "shorter than any retention",
            None,
            |mark| mark.removed_before = Some(mark.removed_at - TimeDelta::minutes(59)),
            &early,
        ),
        (
            "the newest time was changed",
            None,
            |mark| mark.seal.newest_at = at(1),
            &[("pass", Some(1))],
        ),
    ];
    for (what, kept, change, expected) in cases {
        let (mut marks, _) = marked();
        marks.iter_mut().for_each(change);
        let removed: RemovedPart = marks.into_iter().collect();
        let rule = RetentionRule::new(now, kept);
        assert_eq!(names(&removed.faults(rule)), expected, "{what}");
    }
    let (mut marks, _) = marked();
    marks.pop();
    let removed: RemovedPart = marks.into_iter().collect();
    let rule = RetentionRule::new(now, None);
    assert_eq!(names(&removed.faults(rule)), [("pass", Some(1))]);
}

/// A mark of the future does not make entries old.
#[test]
fn a_mark_cannot_be_ahead_of_the_clock() {
    let (marks, _) = marked();
    let removed: RemovedPart = marks.into_iter().collect();
    let least = TimeDelta::from_std(RETENTION_MIN).unwrap();
    for (now, expected) in [
        (at(DAY / 2), 2),
        (at(DAY / 2) + least - TimeDelta::minutes(1), 2),
        (at(DAY / 2 + 1) + least, 0),
    ] {
        let faults = removed.faults(RetentionRule::new(now, None));
        assert_eq!(faults.len(), expected, "{now}");
    }
    let long = RetentionRule::new(at(0), Some(Duration::MAX));
    assert_eq!(removed.faults(long).len(), 2);
}

#[test]
fn a_missing_seal_of_an_export_has_expired_or_not() {
    let (marks, _) = marked();
    let exported = Seal {
        number: 1,
        ..marks[0].seal.clone()
    };
    let mut marks = marks;
    marks[0].seal.number = 2;
    let removed: RemovedPart = marks.into_iter().collect();
    let of = |seal: &Seal, kept| {
        let rule = RetentionRule::new(at(41 * DAY), kept);
        let fault = removed.fault_of_missing(seal, rule);
        fault.map(|fault| fault.kind.name())
    };
    assert_eq!(of(&exported, Some(days(30))), None);
    assert_eq!(of(&exported, None), None);
    assert_eq!(of(&exported, Some(days(50))), Some("early"));
    let young = Seal {
        newest_at: at(10 * DAY),
        ..exported.clone()
    };
    assert_eq!(of(&young, None), Some("early"));
    let after = Seal {
        number: 3,
        ..exported.clone()
    };
    assert_eq!(of(&after, None), Some("missing"));
    let unknown = Seal {
        tenancy: tenancy("c"),
        ..exported
    };
    assert_eq!(of(&unknown, None), Some("missing"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// From any pass on, while seals of others stay there.
    #[test]
    fn a_tenancy_cannot_lose_its_newest_part(batches in batches(), from in 0..40_usize, org in "[a-c]?") {
        let whole = sealed(&batches);
        let from = from.min(whole.len());
        let lost = tenancy(&org);
        let ends = |lines: &[Line]| lines.iter().filter_map(|line| match line {
            Line::Seal(seal) => Some(seal.end),
            Line::Entry(_) => None,
        }).next_back();
        let begin = ends(&whole[..from]);
        let is_lost = |line: &Line| is_of(line, &lost) && match line {
            Line::Entry(entry) => begin.is_none_or(|end| entry.position > end),
            Line::Seal(seal) => begin.is_none_or(|end| seal.end > end),
        };
        let left: Vec<_> = whole.iter().filter(|line| !is_lost(line)).cloned().collect();
        // Without any seal at its end, the trail only looks shorter.
        if left.len() < whole.len() && ends(&left) == ends(&whole) {
            prop_assert!(verified_in(whole_range(), &left).faults.total > 0);
        }
    }
}

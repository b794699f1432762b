//! Known hashes, and that every single change of a sealed trail is found.

use FaultKind::{Entries, Hash as HashFault, Link as LinkFault, Missing, Unreadable};
use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{at, batches, entry, faults, sealed, tenancy, verified};
use crate::{AuditEntry, ChainVerifier, FaultKind, Hash, Line, Link, seal};

/// Computed by Python from the texts that `lines` pins:
///
/// ```python
/// hash = hashlib.sha256(json.dumps(link["pass"], sort_keys=True, separators=(",", ":")).encode()).hexdigest()
/// ```
#[test]
fn hashes_are_those_that_another_program_computes() {
    let batch = [entry("acme", 7, 1, 3), entry("acme", 9, 2, 1)];
    let links = seal(&batch, None, at(9));
    let later = seal(&[entry("beta", 11, 3, 2)], links.last(), at(9));
    let hashes: Vec<_> = links
        .iter()
        .chain(&later)
        .map(|link| link.hash.to_string())
        .collect();
    assert_eq!(
        hashes,
        [
            "e38ae64519852c0595761499b4bac2577e3ec6f9712654d0b3a69443891a0b67",
            "5eba7b7ff1835af91d16d5055fc31d7850bc807ccd7f4da061a788b4a52ef76e",
            "0faa9db3644a5783137bf113c1684690952dfa14cdab58adaa2b2da89f6db0b7",
        ]
    );
    let root = links[1].pass.root.to_string();
    assert_eq!(
        root,
        "25328b1b2357c27b6111727d9c11d36f48ff0160c4c2ebe3e6349032494ba4ca"
    );
}

#[test]
fn a_chain_begins_with_an_origin() {
    let links = seal(&[entry("a", 5, 1, 3)], None, at(9));
    let numbers: Vec<_> = links.iter().map(|link| link.pass.number).collect();
    assert_eq!(numbers, [0, 1]);
    let report = verified(&[Line::Link(links[0].clone())]);
    assert_eq!(faults(&report), []);
    assert_eq!(report.first, None);
}

/// Retention removes complete passes: a pass over the entries of a year would keep them for a year longer.
#[test]
fn a_pass_spans_a_day_at_most() {
    let day = 86_400;
    let times = [0, day, day + 1, day + 2, 9 * day, 1];
    let entries: Vec<_> = (1..)
        .zip(times)
        .map(|(n, second)| entry("a", n, n, second))
        .collect();
    let links = seal(&entries, None, at(9));
    let passes: Vec<_> = links[1..]
        .iter()
        .map(|link| (link.pass.entries, link.pass.newest_at))
        .collect();
    // The newest time never falls.
    let expected = [
        (2, at(day)),
        (2, at(day + 2)),
        (1, at(9 * day)),
        (1, at(9 * day)),
    ];
    assert_eq!(passes, expected);
}

/// The origin, then passes of two, two and one entry.
fn three() -> Vec<Line> {
    sealed(&[
        vec![entry("a", 1, 1, 0), entry("b", 1, 2, 0)],
        vec![entry("a", 2, 3, 1), entry("b", 3, 4, 0)],
        vec![entry("a", 4, 5, 2)],
    ])
}

fn with_entry(lines: &[Line], index: usize, change: impl Fn(&mut AuditEntry)) -> Vec<Line> {
    let mut lines = lines.to_vec();
    match &mut lines[index] {
        Line::Entry(entry) => change(entry),
        other => panic!("{other}"),
    }
    lines
}

fn with_link(lines: &[Line], index: usize, change: impl Fn(&mut Link)) -> Vec<Line> {
    let mut lines = lines.to_vec();
    match &mut lines[index] {
        Line::Link(link) => change(link),
        other => panic!("{other}"),
    }
    lines
}

#[test]
fn faults_name_what_was_changed() {
    let lines = three();
    let found = |lines: &[Line]| faults(&verified(lines));
    assert_eq!(found(&lines), []);
    let without = |index: usize| {
        let mut lines = lines.clone();
        lines.remove(index);
        found(&lines)
    };
    // 0: origin, 1-2: entries, 3: pass 1, 4-5: entries, 6: pass 2, 7: an entry, 8: pass 3
    assert_eq!(without(1), [(Entries, Some(1))]);
    assert_eq!(without(5), [(Entries, Some(2))]);
    assert_eq!(without(6), [(LinkFault, Some(3)), (Entries, Some(3))]);
    assert_eq!(without(8), []);
    let renamed = with_entry(&lines, 4, |entry| entry.actor.push('x'));
    assert_eq!(found(&renamed), [(Entries, Some(2))]);
    let mut swapped = lines.clone();
    swapped.swap(4, 5);
    assert_eq!(found(&swapped), [(Entries, Some(2))]);
    let changed = with_link(&lines, 6, |link| link.pass.sealed_at = at(1));
    assert_eq!(found(&changed), [(HashFault, Some(2))]);
    let changed = with_link(&lines, 6, |link| link.hash.0[0] ^= 1);
    assert_eq!(
        found(&changed),
        [(HashFault, Some(2)), (LinkFault, Some(3))]
    );
    let mut other = lines.clone();
    other.splice(4..=6, []);
    assert_eq!(found(&other), [(LinkFault, Some(3))]);
}

/// A file whose begin was cut off still verifies from its first complete pass on.
#[test]
fn a_range_begins_with_any_link() {
    let lines = three();
    for (begin, first, expected) in [
        (3, 2, &[][..]),
        (4, 2, &[]),
        (2, 1, &[(Entries, Some(1))]),
        (5, 2, &[(Entries, Some(2))]),
    ] {
        let report = verified(&lines[begin..]);
        assert_eq!(faults(&report), expected, "from line {begin}");
        assert_eq!(
            report.first.unwrap().pass.number,
            first,
            "from line {begin}"
        );
    }
}

#[test]
fn lines_that_cannot_be_read_are_faults() {
    let mut verifier = ChainVerifier::default();
    verifier.take(Some(three()[0].clone()));
    verifier.take(None);
    let report = verifier.finish();
    assert_eq!(faults(&report), [(Unreadable, None)]);
    assert_eq!(
        report.faults[0].to_string(),
        "line 2 is neither an entry nor a pass"
    );
}

/// A file may contain any number.
#[test]
fn a_chain_with_the_highest_number_is_no_panic() {
    let forged = with_link(&three(), 6, |link| link.pass.number = i64::MAX);
    let expected = [
        (HashFault, Some(i64::MAX)),
        (LinkFault, Some(i64::MAX)),
        (LinkFault, Some(3)),
    ];
    assert_eq!(faults(&verified(&forged)), expected);
}

#[test]
fn a_noted_hash_is_found_or_missing() {
    let lines = three();
    let Line::Link(second) = &lines[6] else {
        unreachable!("the second pass")
    };
    for (hash, expected) in [(second.hash, &[][..]), (Hash::ZERO, &[(Missing, None)])] {
        let mut verifier = ChainVerifier::new(Some(hash));
        for line in &lines {
            verifier.take(Some(line.clone()));
        }
        assert_eq!(faults(&verifier.finish()), expected, "{hash}");
    }
}

/// Changes one thing of the sealed part; `None` if that is not possible there.
fn tampered(lines: &[Line], what: usize, place: Index) -> Option<Vec<Line>> {
    let mut lines = lines.to_vec();
    // Without the origin the chain begins with the first pass, which is no fault.
    let index = 1 + place.index(lines.len() - 1);
    let next = lines.get(index + 1).cloned();
    let is_last = next.is_none();
    match (&mut lines[index], what) {
        (Line::Entry(entry), 0) => entry.actor.push('x'),
        (Line::Entry(entry), 1) => entry.tenancy = tenancy("other"),
        (Line::Entry(entry), 2) => entry.at += TimeDelta::microseconds(1),
        (Line::Entry(entry), 3) => entry.generation_before = Some(7),
        (Line::Entry(_), 4) => drop(lines.remove(index)),
        (Line::Entry(entry), 5) => {
            let mut inserted = entry.clone();
            inserted.position.sequence -= 1;
            lines.insert(index, Line::Entry(inserted));
        }
        (Line::Entry(_), _) => match next {
            Some(Line::Entry(_)) => lines.swap(index, index + 1),
            _ => return None,
        },
        (Line::Link(link), 0) => link.hash.0[31] ^= 1,
        (Line::Link(link), 1) => link.pass.previous.0[0] ^= 1,
        (Line::Link(link), 2) => link.pass.number += 1,
        (Line::Link(link), 3) => link.pass.entries += 1,
        (Line::Link(link), 4) => link.pass.newest_at += TimeDelta::microseconds(1),
        (Line::Link(link), 5) => link.pass.end.sequence += 1,
        (Line::Link(link), 6) => link.pass.root.0[0] ^= 1,
        (Line::Link(link), 7) => link.pass.sealed_at += TimeDelta::microseconds(1),
        // Without its link, the last pass is unsealed, and that is no fault.
        _ if is_last => return None,
        _ => drop(lines.remove(index)),
    }
    Some(lines)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sealed_trail_has_no_faults(batches in batches()) {
        let report = verified(&sealed(&batches));
        prop_assert_eq!(faults(&report), []);
        prop_assert_eq!(report.entries, batches.iter().map(Vec::len).sum::<usize>() as u64);
        prop_assert_eq!(report.unsealed.entries, 0);
    }

    #[test]
    fn any_single_change_is_found(batches in batches(), what in 0..9_usize, place in any::<Index>()) {
        if let Some(lines) = tampered(&sealed(&batches), what, place) {
            prop_assert!(verified(&lines).fault_count > 0, "{:#?}", lines);
        }
    }

    /// Entries that come later do not make a sealed trail faulty.
    #[test]
    fn unsealed_entries_are_counted(batches in batches(), more in 1..4_i64) {
        let mut lines = sealed(&batches);
        for number in 0..more {
            lines.push(Line::Entry(entry("a", 1_000, 1_000 + number, 5)));
        }
        let report = verified(&lines);
        prop_assert_eq!(report.fault_count, 0);
        prop_assert_eq!(report.unsealed.entries, more.unsigned_abs());
        prop_assert_eq!(report.unsealed.oldest_at, Some(at(5)));
    }
}

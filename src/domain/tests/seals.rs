//! Seals of the audit trail: known hashes, and that every single change of a sealed trail is found.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::given::{at, id, origin_of};
use crate::domain::Tenancy;
use crate::domain::audit::{
    Action, AuditEntry, ChainHash, ChainHead, Change, EntryRecord, ExportRecord, PassHead, Seal,
    TrailEntry, TrailFaultKind, TrailPosition, TrailVerifier, VerifiedRange, VerifiedTrail,
    seal_all,
};

pub(super) fn tenancy(name: &str) -> Tenancy {
    if name.is_empty() {
        return Tenancy::new();
    }
    [("org".to_owned(), name.to_owned())].into()
}

fn position(commit_order: i64, sequence: i64) -> TrailPosition {
    TrailPosition {
        era: 0,
        commit_order,
        sequence,
    }
}

pub(super) fn entry(org: &str, commit_order: i64, sequence: i64, second: i64) -> TrailEntry {
    TrailEntry {
        position: position(commit_order, sequence),
        entry: AuditEntry {
            sequence,
            origin: origin_of("ann", second),
            change: Change {
                action: Action::Create,
                kind: "Cluster".to_owned(),
                id: id(1),
                name: "a".to_owned(),
                generation_before: None,
                generation_after: Some(1),
                reason: None,
            },
            tenancy: tenancy(org),
        },
    }
}

/// A line of an export, before it is written.
#[derive(Debug, Clone)]
pub(super) enum Line {
    Entry(TrailEntry),
    Seal(Seal),
}

/// An export: each batch is sealed at once.
pub(super) fn sealed(batches: &[Vec<TrailEntry>]) -> Vec<Line> {
    let mut heads = BTreeMap::new();
    let mut last = PassHead::default();
    let mut lines = Vec::new();
    for batch in batches {
        let seals = seal_all(batch, last, &mut heads, at(1_000));
        let mut entries = batch.iter().peekable();
        for pass in seals.chunk_by(|one, other| one.end == other.end) {
            while let Some(entry) = entries.next_if(|entry| entry.position <= pass[0].end) {
                lines.push(Line::Entry(entry.clone()));
            }
            lines.extend(pass.iter().cloned().map(Line::Seal));
            last = pass[0].pass();
        }
    }
    lines
}

fn verified(lines: &[Line]) -> VerifiedTrail {
    verified_in(whole_range(), lines)
}

/// The range of a whole trail.
pub(super) fn whole_range() -> VerifiedRange {
    VerifiedRange {
        begin: Some(TrailPosition::START),
        pass_hash: Some(ChainHash::ZERO),
        ..VerifiedRange::default()
    }
}

pub(super) fn verified_in(range: VerifiedRange, lines: &[Line]) -> VerifiedTrail {
    let mut verifier = TrailVerifier::new(range);
    for line in lines {
        match line {
            Line::Entry(entry) => {
                let record = EntryRecord {
                    position: entry.position,
                    tenancy: entry.entry.tenancy.clone(),
                    at: entry.entry.origin.at,
                };
                verifier.entry(&record, &entry.line());
            }
            Line::Seal(seal) => verifier.seal(seal),
        }
    }
    verifier.finish()
}

/// Computed by Python from the bytes that `the_bytes_of_an_entry_never_change` pins:
///
/// ```python
/// one = '{"action":"create","actor":"ann",…,"sequence":1,"tenancy":{"org":"acme"},"time":"2026-01-01T00:00:00.000000Z"}\n'
/// first = hashlib.sha256(bytes(32) + one.encode()).hexdigest()
/// second = hashlib.sha256(bytes.fromhex(first) + two.encode()).hexdigest()
/// ```
#[test]
fn hashes_are_those_that_another_program_computes() {
    let entries = [entry("acme", 7, 1, 0), entry("acme", 9, 2, 1)];
    let mut heads = BTreeMap::new();
    let first = seal_all(&entries[..1], PassHead::default(), &mut heads, at(9));
    let second = seal_all(&entries[1..], first[0].pass(), &mut heads, at(9));
    assert_eq!(first[0].previous, ChainHash::ZERO);
    assert_eq!(first[0].hash.to_string(), FIRST);
    assert_eq!(second[0].previous, first[0].hash);
    assert_eq!(second[0].hash.to_string(), SECOND);
    assert_eq!((second[0].number, second[0].entries), (2, 1));
    assert_eq!(
        (second[0].begin, second[0].end),
        (position(7, 1), position(9, 2))
    );
}

const FIRST: &str = "ef84111034e8137e781cf68e8597d634ccdcce6580cb7f320c1c3601d0528af3";
const SECOND: &str = "975964ad5b42bd2321d017ff02a0f17ac76794cc0c863430b16d530375b32f87";

#[test]
fn a_pass_has_a_seal_for_each_tenancy_and_one_range() {
    let entries = [
        entry("a", 5, 1, 3),
        entry("b", 5, 2, 9),
        entry("a", 6, 3, 4),
    ];
    let seals = seal_all(&entries, PassHead::default(), &mut BTreeMap::new(), at(9));
    let summary: Vec<_> = seals
        .iter()
        .map(|seal| (&seal.tenancy, seal.entries))
        .collect();
    assert_eq!(summary, [(&tenancy("a"), 2), (&tenancy("b"), 1)]);
    for seal in &seals {
        assert_eq!(
            (seal.begin, seal.end),
            (TrailPosition::START, position(6, 3))
        );
        assert_eq!(seal.newest_at, at(9));
    }
}

/// Retention removes whole passes: a pass over the entries of a year would keep them for a year longer.
#[test]
fn a_pass_spans_a_day_at_most() {
    let day = 86_400;
    let times = [0, day, day + 1, day + 2, 9 * day, 1];
    let entries: Vec<_> = (1..)
        .zip(times)
        .map(|(n, second)| entry("a", n, n, second))
        .collect();
    let mut heads = BTreeMap::new();
    let seals = seal_all(&entries, PassHead::default(), &mut heads, at(9));
    let counts: Vec<_> = seals.iter().map(|seal| seal.entries).collect();
    assert_eq!(counts, [2, 2, 1, 1]);
    assert!(seals.windows(2).all(|pair| pair[0].end == pair[1].begin));
    let head = ChainHead {
        number: 4,
        hash: seals[3].hash,
    };
    assert_eq!(heads[&tenancy("a")], head);
}

#[test]
fn lines_are_read_as_they_were_written() {
    for line in sealed(&[vec![entry("a", 5, 1, 3), entry("", 5, 2, 9)]]) {
        match line {
            Line::Entry(entry) => {
                let record = EntryRecord {
                    position: entry.position,
                    tenancy: entry.entry.tenancy.clone(),
                    at: entry.entry.origin.at,
                };
                let found = ExportRecord::parse(&entry.line());
                assert_eq!(found, Some(ExportRecord::Entry(record)));
            }
            Line::Seal(seal) => {
                let found = ExportRecord::parse(&seal.line());
                assert_eq!(found, Some(ExportRecord::Seal(seal)));
            }
        }
    }
    for text in [
        "",
        "{}",
        "[]",
        r#"{"seal":{}}"#,
        r#"{"position":"x","tenancy":{},"time":"now"}"#,
    ] {
        assert_eq!(ExportRecord::parse(text), None, "{text}");
    }
}

/// What a fault is called by is what was done.
#[test]
fn faults_name_what_was_changed() {
    let batches = [
        vec![entry("a", 1, 1, 0), entry("b", 1, 2, 0)],
        vec![entry("a", 2, 3, 0), entry("a", 3, 4, 0)],
        vec![entry("a", 4, 5, 0), entry("b", 4, 6, 0)],
    ];
    let whole = sealed(&batches);
    assert!(
        matches!(whole[6], Line::Seal(_)),
        "the seal of the second pass"
    );
    let kinds = |lines: &[Line]| {
        let faults = verified(lines).faults.first;
        faults
            .into_iter()
            .map(|fault| (fault.kind.name(), fault.number))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&whole), []);
    let without = |index: usize| {
        let mut lines = whole.clone();
        lines.remove(index);
        kinds(&lines)
    };
    assert_eq!(without(4), [("entries", Some(2))]);
    assert_eq!(without(5), [("bounds", Some(2)), ("entries", Some(2))]);
    assert_eq!(
        without(6),
        [
            ("gap", Some(3)),
            ("pass_link", Some(3)),
            ("number", Some(3)),
            ("entries", Some(3)),
        ]
    );
    let with_seal = |change: fn(&mut Seal)| {
        let mut lines = whole.clone();
        let Line::Seal(seal) = &mut lines[6] else {
            unreachable!("checked above")
        };
        change(seal);
        kinds(&lines)
    };
    assert_eq!(
        with_seal(|seal| seal.hash.0[0] ^= 1),
        [
            ("hash", Some(2)),
            ("pass", Some(2)),
            ("link", Some(3)),
            ("hash", Some(3)),
        ]
    );
    assert_eq!(
        with_seal(|seal| seal.number = 7),
        [("number", Some(7)), ("pass", Some(7)), ("number", Some(3)),]
    );
    assert_eq!(
        with_seal(|seal| seal.entries = 3),
        [("entries", Some(2)), ("pass", Some(2))]
    );
}

/// Entries of few tenancies, in batches.
pub(super) fn batches() -> impl Strategy<Value = Vec<Vec<TrailEntry>>> {
    let one = ("[a-c]?", 0..3_i64, -200_000..200_000_i64);
    vec(vec(one, 1..6), 1..6).prop_map(|batches| {
        let (mut order, mut sequence) = (1, 0);
        let mut next = |(org, step, second): (String, i64, i64)| {
            order += step;
            sequence += 1;
            entry(&org, order, sequence, second)
        };
        let batches = batches.into_iter();
        batches
            .map(|batch| batch.into_iter().map(&mut next).collect())
            .collect()
    })
}

/// Changes one thing of the sealed part; `None` if that is not possible there.
fn tampered(lines: &[Line], what: usize, place: Index) -> Option<Vec<Line>> {
    let mut lines = lines.to_vec();
    let index = place.index(lines.len());
    let next = lines.get(index + 1).cloned();
    match (&mut lines[index], what) {
        (Line::Entry(entry), 0) => entry.entry.origin.actor.push('x'),
        (Line::Entry(entry), 1) => entry.entry.tenancy = tenancy("other"),
        (Line::Entry(entry), 2) => entry.entry.origin.at += chrono::TimeDelta::microseconds(1),
        (Line::Entry(entry), 3) => entry.entry.change.generation_before = Some(7),
        (Line::Entry(_), 4) => drop(lines.remove(index)),
        (Line::Entry(entry), 5) => {
            let mut inserted = entry.clone();
            inserted.position.sequence -= 1;
            lines.insert(index, Line::Entry(inserted));
        }
        (Line::Entry(entry), 6) => {
            // Two changes of place, each with the position of the other.
            let Some(Line::Entry(mut other)) = next else {
                return None;
            };
            std::mem::swap(&mut entry.position, &mut other.position);
            let moved = Line::Entry(entry.clone());
            lines[index] = Line::Entry(other);
            lines[index + 1] = moved;
        }
        (Line::Entry(_), 7) => {
            let Some(Line::Entry(_)) = next else {
                return None;
            };
            lines.swap(index, index + 1);
        }
        (Line::Seal(seal), 0) => seal.hash.0[31] ^= 1,
        (Line::Seal(seal), 1) => seal.previous.0[0] ^= 1,
        (Line::Seal(seal), 2) => seal.number += 1,
        (Line::Seal(seal), 3) => seal.entries += 1,
        (Line::Seal(seal), 4) => seal.newest_at += chrono::TimeDelta::microseconds(1),
        (Line::Seal(seal), 5) => seal.end.sequence += 1,
        (Line::Seal(seal), 6) => seal.begin.sequence += 1,
        (Line::Seal(seal), 7) => seal.tenancy = tenancy("other"),
        (Line::Seal(seal), 8) => seal.sealed_at += chrono::TimeDelta::microseconds(1),
        (Line::Seal(seal), 9) => seal.pass_previous.0[0] ^= 1,
        (Line::Seal(seal), 10) => seal.pass_hash.0[0] ^= 1,
        _ => {
            // Without its only seal, the last pass is unsealed, and that is no fault.
            let is_last = index + 1 == lines.len() && matches!(lines[index - 1], Line::Entry(_));
            if is_last {
                return None;
            }
            lines.remove(index);
        }
    }
    Some(lines)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sealed_trail_is_whole(batches in batches()) {
        let trail = verified(&sealed(&batches));
        prop_assert_eq!(trail.faults.first, []);
        let entries: u64 = trail.chains.values().map(|chain| chain.entries).sum();
        prop_assert_eq!(entries, batches.iter().map(Vec::len).sum::<usize>() as u64);
        prop_assert_eq!(trail.unsealed.count, 0);
    }

    #[test]
    fn any_single_change_is_found(batches in batches(), what in 0..12_usize, place in any::<Index>()) {
        let whole = sealed(&batches);
        if let Some(lines) = tampered(&whole, what, place) {
            let faults = verified(&lines).faults;
            prop_assert!(faults.total > 0, "{:#?}", lines);
        }
    }

    /// Entries that come later do not make a sealed trail unsound.
    #[test]
    fn unsealed_entries_are_counted(batches in batches(), more in 1..4_i64) {
        let mut lines = sealed(&batches);
        for number in 0..more {
            lines.push(Line::Entry(entry("a", 1_000, 1_000 + number, 5)));
        }
        let trail = verified(&lines);
        prop_assert_eq!(trail.faults.total, 0);
        prop_assert_eq!(trail.unsealed.count, more.unsigned_abs());
        prop_assert_eq!(trail.unsealed.oldest_at, Some(at(5)));
    }
}

#[test]
fn a_range_within_a_chain_begins_with_any_number() {
    let batches = [
        vec![entry("a", 1, 1, 0)],
        vec![entry("a", 2, 2, 0), entry("b", 2, 3, 0)],
        vec![entry("a", 3, 4, 0)],
    ];
    let lines = sealed(&batches).split_off(2);
    let faults = verified(&lines).faults.first;
    let kinds: Vec<_> = faults.iter().map(|fault| fault.kind).collect();
    assert!(
        kinds.contains(&TrailFaultKind::Number { expected: 1 }),
        "{kinds:?}"
    );
    let mut verifier = TrailVerifier::new(VerifiedRange {
        is_within: true,
        ..VerifiedRange::default()
    });
    for line in &lines {
        if let Line::Seal(seal) = line
            && seal.number == if seal.tenancy == tenancy("a") { 2 } else { 1 }
        {
            verifier.expect(seal);
        }
    }
    for line in &lines {
        match line {
            Line::Entry(entry) => {
                let Some(ExportRecord::Entry(record)) = ExportRecord::parse(&entry.line()) else {
                    panic!("{entry:?}")
                };
                verifier.entry(&record, &entry.line());
            }
            Line::Seal(seal) => verifier.seal(seal),
        }
    }
    let trail = verifier.finish();
    assert_eq!(trail.faults.first, []);
    let chain = &trail.chains[&tenancy("a")];
    assert_eq!(
        (chain.first.number, chain.last.number, chain.entries),
        (2, 3, 2)
    );
}

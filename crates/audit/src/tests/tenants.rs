//! Exports of one tenant.

use FaultKind::{Entries, Unreadable};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{batches, entry, faults, sealed, tenancy, verified};
use crate::{Export, FaultKind, Line};

/// The export of a tenant.
fn exported(lines: Vec<Line>, org: &str) -> Vec<Line> {
    let (mut export, first) = Export::begin(tenancy(org));
    let mut out: Vec<_> = first.into_iter().collect();
    for line in lines {
        out.extend(export.take(line));
    }
    out.extend(export.finish());
    out
}

/// Passes of `a`, `b` and `a`, then an unsealed entry of each.
fn trail() -> Vec<Line> {
    let mut lines = sealed(&[
        vec![
            entry("a", 1, 1, 0),
            entry("b", 1, 2, 0),
            entry("a", 1, 3, 0),
        ],
        vec![entry("b", 2, 4, 0)],
        vec![entry("a", 3, 5, 0)],
    ]);
    lines.extend([5, 6].map(|n| Line::Entry(entry("a", n, n, 0))));
    lines.push(Line::Entry(entry("b", 7, 7, 0)));
    lines
}

#[test]
fn an_export_has_the_entries_of_its_tenant_and_every_pass() {
    let lines = exported(trail(), "a");
    let report = verified(&lines);
    assert_eq!(faults(&report), []);
    assert_eq!(report.tenancy, Some(tenancy("a")));
    assert_eq!((report.entries, report.unsealed.entries), (3, 2));
    assert_eq!(report.last.unwrap().pass.number, 3);
    let others = lines
        .iter()
        .filter(|line| line.to_string().contains("\"org\":\"b\""));
    assert_eq!(others.count(), 0);
    // A tenant without entries gets only the chain.
    let report = verified(&exported(trail(), "c"));
    assert_eq!((faults(&report), report.entries), (vec![], 0));
}

#[test]
fn changes_of_an_export_are_found() {
    // 0: tenant, 1: origin, 2-3: entries, 4: pass 1, 5: pass 2, 6: an entry, 7: pass 3
    let lines = exported(trail(), "a");
    let found = |change: &dyn Fn(&mut Vec<Line>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        faults(&verified(&lines))
    };
    let Line::Proven(proven) = lines[2].clone() else {
        panic!("{}", lines[2])
    };
    assert_eq!(found(&|lines| lines.swap(2, 3)), [(Entries, Some(1))]);
    assert_eq!(found(&|lines| lines.swap(3, 4)), [(Entries, Some(2))]);
    let twice = |lines: &mut Vec<Line>| lines.insert(2, lines[2].clone());
    assert_eq!(found(&twice), [(Entries, Some(1))]);
    let unproven = |lines: &mut Vec<Line>| lines[2] = Line::Entry(proven.entry.clone());
    assert_eq!(found(&unproven), [(Entries, Some(1))]);
    let of_nobody = |lines: &mut Vec<Line>| drop(lines.remove(0));
    assert_eq!(
        found(&of_nobody),
        [1, 2, 3].map(|number| (Entries, Some(number)))
    );
    let of_another = |lines: &mut Vec<Line>| lines[0] = Export::begin(tenancy("b")).1.unwrap();
    assert_eq!(found(&of_another), [(Entries, Some(1)), (Entries, Some(3))]);
    let later = |lines: &mut Vec<Line>| lines.swap(0, 1);
    assert_eq!(found(&later)[0], (Unreadable, None));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_export_has_no_faults(batches in batches(), org in "[a-c]") {
        let own = batches.iter().flatten().filter(|entry| entry.tenancy == tenancy(&org));
        let report = verified(&exported(sealed(&batches), &org));
        prop_assert_eq!(faults(&report), []);
        prop_assert_eq!(report.entries, own.count() as u64);
    }

    #[test]
    fn any_change_of_an_entry_or_its_proof_is_found(batches in batches(), org in "[a-c]", what in 0..5, place in any::<Index>()) {
        let mut lines = exported(sealed(&batches), &org);
        let proven: Vec<_> = lines.iter_mut().filter_map(|line| match line {
            Line::Proven(proven) => Some(proven),
            _ => None,
        }).collect();
        if !proven.is_empty() {
            let index = place.index(proven.len());
            let proven = proven.into_iter().nth(index).unwrap();
            match what {
                0 => proven.entry.name.push('x'),
                1 => proven.entry.position.sequence += 1,
                2 => proven.index += 1,
                3 => proven.path.push(crate::Hash::ZERO),
                _ if proven.path.pop().is_some() => {}
                _ => proven.entry.sequence += 1,
            }
            prop_assert!(verified(&lines).fault_count > 0);
        }
    }
}

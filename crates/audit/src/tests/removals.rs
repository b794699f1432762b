//! What retention may remove, and comparisons with earlier exports.

use std::time::Duration;

use FaultKind::{Early, Missing, Rewritten};
use chrono::TimeDelta;

use super::{at, entry, faults, sealed, verified};
use crate::{AuditReport, FaultKind, Line, Link, RETENTION_MIN, RetentionRule};

const DAY: i64 = 86_400;

/// The links of passes of the days 0, 10, 20 and 30, behind the origin.
fn links() -> Vec<Link> {
    let batches: Vec<_> = (0..4)
        .map(|n| vec![entry("a", n + 1, n + 1, n * 10 * DAY)])
        .collect();
    let links = sealed(&batches).into_iter().filter_map(|line| match line {
        Line::Link(link) => Some(link),
        _ => None,
    });
    links.collect()
}

fn days(days: u64) -> Duration {
    Duration::from_hours(24 * days)
}

#[test]
fn only_what_has_expired_may_be_removed() {
    let first = &links()[2];
    for (day, configured, expected) in [
        (41, None, &[][..]),
        (41, Some(days(30)), &[]),
        (41, Some(days(32)), &[(Early, Some(2))]),
        (9, None, &[(Early, Some(2))]),
    ] {
        let mut report = AuditReport::default();
        let rule = RetentionRule::new(at(day * DAY), configured);
        report.check_removed(first, 3, rule);
        assert_eq!(faults(&report), expected, "day {day}, {configured:?}");
        let removed = report.removed.unwrap();
        assert_eq!((removed.newest_at, removed.entries_left), (at(10 * DAY), 3));
    }
}

#[test]
fn the_origin_is_nothing_that_was_removed() {
    let mut report = AuditReport::default();
    report.check_removed(&links()[0], 0, RetentionRule::new(at(0), None));
    assert_eq!(report, AuditReport::default());
}

/// Clocks differ by a minute at most.
#[test]
fn the_shortest_retention_applies_without_a_setting() {
    let first = &links()[1];
    let least = TimeDelta::from_std(RETENTION_MIN).unwrap();
    for (now, count) in [
        (at(0), 1),
        (at(0) + least - TimeDelta::minutes(1), 1),
        (at(1) + least - TimeDelta::minutes(1), 0),
    ] {
        let mut report = AuditReport::default();
        report.check_removed(first, 0, RetentionRule::new(now, None));
        assert_eq!(report.fault_count, count, "{now}");
    }
    let mut report = AuditReport::default();
    report.check_removed(first, 0, RetentionRule::new(at(0), Some(Duration::MAX)));
    assert_eq!(report.fault_count, 1);
}

#[test]
fn what_is_left_follows_the_last_removed_pass() {
    let batches: Vec<_> = (1..4).map(|n| vec![entry("a", n, n, n)]).collect();
    let lines = sealed(&batches);
    // Pass 2 stays without its entry.
    let report = verified(&lines[4..]);
    assert_eq!(faults(&report), []);
    assert_eq!(report.first.unwrap().pass.number, 3);
}

#[test]
fn passes_of_an_earlier_export_are_there_or_have_expired() {
    let links = links();
    let rule = RetentionRule::new(at(41 * DAY), Some(days(30)));
    let compared = |exported: &Link, stored: Option<&Link>| {
        let mut report = AuditReport::default();
        report.compare(exported, stored, Some(&links[3]), rule);
        let kinds: Vec<_> = report.faults.iter().map(|fault| fault.kind).collect();
        (kinds, report.compared.unwrap().expired)
    };
    assert_eq!(compared(&links[3], Some(&links[3])), (vec![], 0));
    let other = Link {
        hash: links[1].hash,
        ..links[3].clone()
    };
    assert_eq!(compared(&other, Some(&links[3])), (vec![Rewritten], 0));
    assert_eq!(compared(&links[2], None), (vec![], 1));
    assert_eq!(compared(&links[4], None), (vec![Missing], 0));
    let mut young = links[2].clone();
    young.pass.newest_at = at(20 * DAY);
    assert_eq!(compared(&young, None), (vec![Early], 0));
    let mut report = AuditReport::default();
    report.compare(&links[1], None, None, rule);
    assert_eq!(faults(&report), [(Missing, Some(1))]);
}

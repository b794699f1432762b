//! Retention removes entire passes, and the remaining trail is verified as before.

use chrono::{DateTime, Utc};
use hyperfleet_audit::FaultKind::{Early, Entries, Hash};
use hyperfleet_service::app::trail::TrailRange;

use super::{PASSES, Sealed};
use crate::support::{ACME, BETA};

fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

const ENTRIES: &str = "SELECT count(*) FROM audit_entries";

impl Sealed {
    /// A retention of an hour, a month later.
    async fn expire_everything(&self) {
        self.api.clock.advance(31 * 86_400);
        let before = self.now() - chrono::TimeDelta::hours(1);
        let expired = self.service.expire_audit(before).await;
        assert_eq!(expired.unwrap(), 12);
    }
}

/// Passes are of 10:00, 11:00 and 12:00.
#[tokio::test]
async fn retention_removes_only_entire_passes() {
    let sealed = Sealed::filled().await;
    for (before, removed, first, passes) in [
        ("2026-01-01T10:00:00Z", 0, 1, 4),
        ("2026-01-01T10:00:00.000001Z", 4, 2, 3),
        ("2026-01-01T11:00:00Z", 0, 2, 3),
        ("2026-01-01T11:30:00Z", 4, 3, 2),
    ] {
        let expired = sealed.service.expire_audit(at(before)).await;
        assert_eq!(expired.unwrap(), removed, "{before}");
        let report = sealed.verify().await;
        assert_eq!(report.faults, [], "{before}");
        let number = |link: Option<hyperfleet_audit::Link>| link.map(|link| link.pass.number);
        assert_eq!(
            (number(report.first), number(report.last)),
            (Some(first), Some(3)),
            "{before}"
        );
        // The last removed one stays.
        assert_eq!(sealed.api.count(PASSES).await, passes, "{before}");
    }
    assert_eq!(sealed.api.count(ENTRIES).await, 4);
}

/// Number and hash of the last pass outlive all entries.
#[tokio::test]
async fn a_chain_goes_on_after_everything_has_expired() {
    let sealed = Sealed::filled().await;
    sealed.expire_everything().await;
    assert_eq!(sealed.api.count(PASSES).await, 1);
    let report = sealed.report(&[], 0).await;
    assert_eq!(report["first"], serde_json::Value::Null, "{report}");
    assert_eq!(report["last"]["pass"]["number"], 3, "{report}");
    assert_eq!(
        report["removed"]["newest_time"], "2026-01-01T12:00:00Z",
        "{report}"
    );
    sealed.api.speaking(ACME).cluster("again").await;
    sealed.seal().await;
    let report = sealed.verify().await;
    assert_eq!(report.faults, []);
    assert_eq!((report.first.unwrap().pass.number, report.entries), (4, 1));
    sealed
        .tamper("UPDATE audit_passes SET sealed_at = now() WHERE number = 3")
        .await;
    assert_eq!(sealed.faults().await, [(Hash, Some(3))]);
}

#[tokio::test]
async fn unsealed_entries_never_expire() {
    let sealed = Sealed::filled().await;
    sealed.api.speaking(BETA).cluster("unsealed").await;
    sealed.expire_everything().await;
    assert_eq!(sealed.api.count(ENTRIES).await, 1);
    sealed.seal().await;
    assert_eq!(sealed.faults().await, []);
}

/// A retention that was interrupted after it had removed a pass: the next one removes the rest of its entries.
#[tokio::test]
async fn an_interrupted_retention_is_no_fault_and_is_continued() {
    let sealed = Sealed::filled().await;
    sealed
        .tamper("DELETE FROM audit_passes WHERE number < 1; DELETE FROM audit_entries WHERE name = 'acme-0-0'")
        .await;
    let left = async || {
        let report = sealed.verify().await;
        assert_eq!(report.faults, []);
        report.removed.unwrap().entries_left
    };
    assert_eq!(left().await, 3);
    let expired = sealed
        .service
        .expire_audit(at("2026-01-01T10:30:00Z"))
        .await;
    assert_eq!(expired.unwrap(), 3);
    assert_eq!(left().await, 0);
}

/// Another program has removed passes: their entries stay as long as retention keeps them.
#[tokio::test]
async fn young_entries_of_removed_passes_stay() {
    let sealed = Sealed::filled().await;
    sealed
        .tamper("DELETE FROM audit_passes WHERE number < 3")
        .await;
    let expired = sealed
        .service
        .expire_audit(at("2026-01-01T11:30:00Z"))
        .await;
    assert_eq!(expired.unwrap(), 0);
    assert_eq!(sealed.api.count(ENTRIES).await, 12);
    sealed.api.clock.advance(-1_800);
    let report = sealed.verify().await;
    assert_eq!(report.removed.unwrap().entries_left, 12);
    assert_eq!(report.faults[0].kind, Early);
}

/// The release before removes entries by their time, and knows no passes.
#[tokio::test]
async fn entries_that_the_release_before_removes_are_reported() {
    let sealed = Sealed::filled().await;
    sealed
        .tamper("DELETE FROM audit_entries WHERE at < '2026-01-01T10:30:00Z'")
        .await;
    assert_eq!(sealed.faults().await, [(Entries, Some(1))]);
    // The retention of this release removes the pass, too.
    let expired = sealed
        .service
        .expire_audit(at("2026-01-01T10:30:00Z"))
        .await;
    assert_eq!(expired.unwrap(), 0);
    assert_eq!(sealed.faults().await, []);
}

/// An export that is older than the retention is still good for what is left.
#[tokio::test]
async fn expired_passes_of_an_earlier_export_are_no_fault() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    sealed.export_to(&file).await;
    let expired = sealed
        .service
        .expire_audit(at("2026-01-01T11:30:00Z"))
        .await;
    assert_eq!(expired.unwrap(), 8);
    let report = sealed
        .report(&["--against", file.to_str().unwrap()], 0)
        .await;
    assert_eq!(
        report["compared"],
        serde_json::json!({"passes": 4, "expired": 2}),
        "{report}"
    );
}

#[tokio::test]
async fn a_range_consists_of_complete_passes() {
    let sealed = Sealed::filled().await;
    for (since, until, expected) in [
        (None, None, Some((1, 3))),
        (Some("2026-01-01T10:00:00.000001Z"), None, Some((2, 3))),
        (
            Some("2026-01-01T11:00:00Z"),
            Some("2026-01-01T11:00:00Z"),
            Some((2, 2)),
        ),
        (None, Some("2026-01-01T10:30:00Z"), Some((1, 2))),
        (Some("2026-01-01T13:00:00Z"), None, None),
    ] {
        let range = TrailRange {
            since: since.map(at),
            until: until.map(at),
        };
        let report = sealed.verify_range(range).await;
        assert_eq!(report.faults, [], "{since:?} {until:?}");
        let ends = report.first.zip(report.last);
        let numbers = ends.map(|(first, last)| (first.pass.number, last.pass.number));
        assert_eq!(numbers, expected, "{since:?} {until:?}");
    }
}

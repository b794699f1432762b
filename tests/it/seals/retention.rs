//! Retention removes whole passes, and what is left is verified as before.

use chrono::{DateTime, Utc};
use hyperfleet::app::trail::TrailRange;

use super::{SEALS, Sealed};
use crate::support::{ACME, BETA};

fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

/// The mark of a retention of two hours at 13:00.
const MARK: &str = "UPDATE audit_seals SET removed_at = '2026-01-01T13:00:00Z', removed_before = '2026-01-01T11:00:00Z'";
const ENTRIES: &str = "SELECT count(*) FROM audit_entries";

impl Sealed {
    /// A retention of an hour, a month later.
    async fn expire_everything(&self) {
        self.api.clock.advance(31 * 86_400);
        let before = self.now() - chrono::TimeDelta::hours(1);
        let expired = self.service.expire_audit(before, self.now()).await;
        assert_eq!(expired.unwrap(), 12);
    }
}

/// Passes are of 10:00, 11:00 and 12:00.
#[tokio::test]
async fn retention_removes_passes_that_are_older_as_a_whole() {
    let sealed = Sealed::filled().await;
    for (before, removed, first, seals) in [
        ("2026-01-01T10:00:00Z", 0, 1, 6),
        ("2026-01-01T10:00:00.000001Z", 4, 2, 6),
        ("2026-01-01T11:00:00Z", 0, 2, 6),
        // The marked seals before the last one of each chain go.
        ("2026-01-01T11:30:00Z", 4, 3, 4),
    ] {
        let expired = sealed.service.expire_audit(at(before), sealed.now()).await;
        assert_eq!(expired.unwrap(), removed, "{before}");
        let verification = sealed.verify().await;
        assert_eq!(verification.trail.faults.first, [], "{before}");
        let chains = verification.trail.chains.values();
        let numbers: Vec<_> = chains
            .map(|chain| (chain.first.number, chain.last.number))
            .collect();
        assert_eq!(numbers, [(first, 3), (first, 3)], "{before}");
        assert_eq!(sealed.api.count(SEALS).await, seals, "{before}");
    }
    assert_eq!(sealed.api.count(ENTRIES).await, 4);
}

/// Number and hash of a chain outlive all of its entries.
#[tokio::test]
async fn a_chain_goes_on_after_everything_has_expired() {
    let sealed = Sealed::filled().await;
    sealed.expire_everything().await;
    assert_eq!(sealed.api.count(SEALS).await, 2);
    let report = sealed.report(&[], 0).await;
    assert_eq!(report["chains"], serde_json::json!([]), "{report}");
    assert_eq!(
        report["removed"]["newest_time"], "2026-01-01T12:00:00Z",
        "{report}"
    );
    sealed.api.speaking(ACME).cluster("again").await;
    sealed.seal().await;
    let verification = sealed.verify().await;
    assert_eq!(verification.trail.faults.first, []);
    let chains = verification.trail.chains.values();
    let numbers: Vec<_> = chains
        .map(|chain| (chain.first.number, chain.entries))
        .collect();
    assert_eq!(numbers, [(4, 1)]);
    sealed
        .tamper("UPDATE audit_seals SET number = 5 WHERE number = 4")
        .await;
    assert_eq!(
        sealed.faults().await,
        [("number", Some(5)), ("pass", Some(5))]
    );
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

/// A retention that was interrupted after it had marked the seals: the next one removes the rest.
#[tokio::test]
async fn an_interrupted_retention_is_no_fault_and_is_continued() {
    let sealed = Sealed::filled().await;
    sealed
        .tamper(&format!(
            "{MARK} WHERE number = 1; DELETE FROM audit_entries WHERE name = 'acme-0-0'"
        ))
        .await;
    let verification = sealed.verify().await;
    assert_eq!(verification.trail.faults.first, []);
    assert_eq!(verification.bounds.removed_entries, 3);
    let early = at("2025-01-01T00:00:00Z");
    let expired = sealed.service.expire_audit(early, sealed.now()).await;
    assert_eq!(expired.unwrap(), 3);
    assert_eq!(sealed.verify().await.bounds.removed_entries, 0);
}

/// The release before removes entries by their time, and knows no seals.
#[tokio::test]
async fn entries_that_the_release_before_removes_are_reported() {
    let sealed = Sealed::filled().await;
    sealed
        .tamper("DELETE FROM audit_entries WHERE at < '2026-01-01T10:30:00Z'")
        .await;
    assert_eq!(
        sealed.faults().await,
        [("entries", Some(1)), ("entries", Some(1))]
    );
    // The retention of this release removes the rest of the pass.
    let expired = sealed
        .service
        .expire_audit(at("2026-01-01T10:30:00Z"), sealed.now())
        .await;
    assert_eq!(expired.unwrap(), 0);
    assert_eq!(sealed.faults().await, []);
}

/// An export that is older than the retention is still good for what is left.
#[tokio::test]
async fn expired_seals_of_an_earlier_export_are_no_fault() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    sealed.export_to(&file).await;
    let expired = sealed
        .service
        .expire_audit(at("2026-01-01T11:30:00Z"), sealed.now())
        .await;
    assert_eq!(expired.unwrap(), 8);
    let report = sealed
        .report(&["--against", file.to_str().unwrap()], 0)
        .await;
    assert_eq!(
        report["compared"],
        serde_json::json!({"seals": 6, "expired": 2}),
        "{report}"
    );
}

#[tokio::test]
async fn a_range_consists_of_whole_passes() {
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
        let trail = sealed.verify_range(range).await.trail;
        assert_eq!(trail.faults.first, [], "{since:?} {until:?}");
        let chain = trail.chains.values().next();
        let numbers = chain.map(|chain| (chain.first.number, chain.last.number));
        assert_eq!(numbers, expected, "{since:?} {until:?}");
    }
}

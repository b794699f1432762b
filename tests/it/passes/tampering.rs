//! Changes of the trail by SQL, which a superuser can make, are found.

use std::time::Duration;

use hyperfleet_audit::FaultKind::{self, Early, Entries, Hash, Link};
use hyperfleet_audit::RetentionRule;
use hyperfleet_service::app::trail::TrailRange;

use super::{Sealed, audit_with};

/// Two of three entries of a pass, of one tenant.
const SWAP: &str = "WITH two AS (
        SELECT sequence, commit_order, row_number() OVER (ORDER BY sequence) AS n FROM audit_entries
        WHERE name IN ('acme-1-0', 'acme-1-1'))
    UPDATE audit_entries e SET commit_order = other.commit_order
    FROM two one JOIN two other ON other.n <> one.n WHERE e.sequence = one.sequence";
/// A copy of an entry, in its place.
const INSERT: &str = "INSERT INTO audit_entries (sequence, at, actor, request_id, action, kind, resource_id, name,
        generation_after, tenancy, era, commit_order)
    OVERRIDING SYSTEM VALUE
    SELECT 1000000, at, actor, request_id, action, kind, gen_random_uuid(), 'forged', 1, tenancy, era, commit_order
    FROM audit_entries WHERE name = 'acme-1-0'";
const WITHOUT_SECOND_PASS: &str =
    "DELETE FROM audit_entries WHERE name LIKE '%-1%-%' OR name = 'beta-1';
    DELETE FROM audit_passes WHERE number = 2";
/// Only the last pass is left, and the one before it, as if retention had removed that one.
const FORGED_REMOVAL: &str = "DELETE FROM audit_entries WHERE name !~ '^(acme|beta)-2'; DELETE FROM audit_passes WHERE number < 2";
const SAVE: &str = "CREATE TABLE saved_entries AS TABLE audit_entries; CREATE TABLE saved_passes AS TABLE audit_passes";
const RESTORE: &str = "TRUNCATE audit_entries, audit_passes;
    INSERT INTO audit_passes SELECT * FROM saved_passes;
    INSERT INTO audit_entries (sequence, at, resource_id, generation_before, generation_after, action, actor, request_id,
                               kind, name, reason, tenancy, era, commit_order)
    OVERRIDING SYSTEM VALUE
    SELECT sequence, at, resource_id, generation_before, generation_after, action, actor, request_id, kind, name, reason,
           tenancy, era, commit_order FROM saved_entries";

/// A change by SQL, and the faults that it causes: their kinds, with the numbers of passes.
type Tampering<'a> = (&'a str, &'a [(FaultKind, Option<i64>)]);

/// Executes each of these alone, and compares the faults with the expected ones.
async fn assert_found(cases: &[Tampering<'_>]) {
    assert_found_in(&Sealed::filled().await, cases).await;
}

async fn assert_found_in(sealed: &Sealed, cases: &[Tampering<'_>]) {
    assert_eq!(sealed.faults().await, []);
    sealed.tamper(SAVE).await;
    for (sql, expected) in cases {
        sealed.tamper(sql).await;
        assert_eq!(sealed.faults().await, *expected, "{sql}");
        sealed.tamper(RESTORE).await;
    }
    assert_eq!(sealed.faults().await, []);
}

#[tokio::test]
async fn every_change_of_entries_is_found() {
    let second = &[(Entries, Some(2))][..];
    assert_found(&[
        (
            "UPDATE audit_entries SET actor = 'mallory' WHERE name = 'acme-1-0'",
            second,
        ),
        (
            "UPDATE audit_entries SET at = at + interval '1 us' WHERE name = 'acme-1-0'",
            second,
        ),
        (
            "UPDATE audit_entries SET reason = '' WHERE name = 'acme-2-2'",
            &[(Entries, Some(3))],
        ),
        ("DELETE FROM audit_entries WHERE name = 'acme-1-1'", second),
        (
            "DELETE FROM audit_entries WHERE name = 'acme-0-0'",
            &[(Entries, Some(1))],
        ),
        (INSERT, second),
        (SWAP, second),
        (
            "UPDATE audit_entries SET tenancy = '{\"org\": \"beta\"}' WHERE name = 'acme-1-1'",
            second,
        ),
        (
            "UPDATE audit_entries SET tenancy = '{}' WHERE name = 'acme-1-1'",
            second,
        ),
    ])
    .await;
}

#[tokio::test]
async fn every_change_of_passes_is_found() {
    let changed = &[(Hash, Some(2))][..];
    assert_found(&[
        (
            "UPDATE audit_passes SET hash = previous WHERE number = 2",
            &[(Hash, Some(2)), (Link, Some(3))],
        ),
        (
            "UPDATE audit_passes SET previous = hash WHERE number = 2",
            &[(Hash, Some(2)), (Link, Some(2))],
        ),
        (
            "UPDATE audit_passes SET entries = 5 WHERE number = 2",
            &[(Hash, Some(2)), (Entries, Some(2))],
        ),
        (
            "UPDATE audit_passes SET root = hash WHERE number = 2",
            &[(Hash, Some(2)), (Entries, Some(2))],
        ),
        (
            "UPDATE audit_passes SET newest_at = now() WHERE number = 2",
            changed,
        ),
        (
            "UPDATE audit_passes SET sealed_at = now() WHERE number = 2",
            changed,
        ),
        (
            "UPDATE audit_passes SET end_sequence = end_sequence - 1 WHERE number = 2",
            &[(Hash, Some(2)), (Entries, Some(2)), (Entries, Some(3))],
        ),
        (
            "UPDATE audit_passes SET number = 7 WHERE number = 3",
            &[(Hash, Some(7)), (Link, Some(7))],
        ),
        // Its entries are those of the next pass, then.
        (
            "DELETE FROM audit_passes WHERE number = 2",
            &[(Link, Some(3)), (Entries, Some(3))],
        ),
        // A pass disappears with its entries.
        (WITHOUT_SECOND_PASS, &[(Link, Some(3))]),
        (
            &format!("{WITHOUT_SECOND_PASS}; UPDATE audit_passes SET number = 2 WHERE number = 3"),
            &[(Hash, Some(2)), (Link, Some(2))],
        ),
    ])
    .await;
}

/// One tenant's newest entries, while those of others stay.
#[tokio::test]
async fn the_newest_part_of_one_tenant_cannot_be_removed() {
    assert_found(&[
        (
            "DELETE FROM audit_entries WHERE name LIKE 'acme-2-%'",
            &[(Entries, Some(3))],
        ),
        (
            "DELETE FROM audit_entries WHERE name ~ '^acme-[12]-'",
            &[(Entries, Some(2)), (Entries, Some(3))],
        ),
    ])
    .await;
}

/// The last pass is of 12:00. At 12:30 no retention can have removed it, because an hour is the shortest one.
#[tokio::test]
async fn a_removal_of_young_entries_is_found() {
    let everything = "DELETE FROM audit_entries; DELETE FROM audit_passes WHERE number < 3";
    let sealed = Sealed::filled().await;
    sealed.api.clock.advance(-1_800);
    let cases: &[Tampering<'_>] = &[
        (everything, &[(Early, Some(3))]),
        // A time that is old enough is not the one that was sealed.
        (
            &format!("{everything}; UPDATE audit_passes SET newest_at = '2025-12-01'"),
            &[(Hash, Some(3))],
        ),
        (
            &format!("{FORGED_REMOVAL}; UPDATE audit_passes SET hash = root WHERE number = 2"),
            &[(Hash, Some(2)), (Link, Some(3))],
        ),
    ];
    assert_found_in(&sealed, cases).await;
}

/// An hour is the least retention; what applies else is the setting, which is not in the database.
#[tokio::test]
async fn removals_are_compared_with_the_setting() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    let path = file.to_str().unwrap();
    sealed.export_to(&file).await;
    sealed.tamper(FORGED_REMOVAL).await;
    for (hours, expected) in [(1, 0), (2, 0), (3, 1)] {
        let rule = RetentionRule::new(sealed.now(), Some(Duration::from_hours(hours)));
        let report = sealed.verify_with(TrailRange::default(), rule).await;
        assert_eq!(report.fault_count, expected, "{hours} h: {report}");
    }
    let (code, output, said) = sealed.audit(&["verify"]).await;
    assert_eq!(code, Some(0), "{said}");
    let expected = "Removed by retention: entries up to 2026-01-01T11:00:00Z. \
                    Checked: older than 1h, because audit.retention is not set here.\n";
    assert!(output.contains(expected), "{output}");
    let url = sealed.api.database.url();
    let args = ["verify", "--database-url", &url, "--against", path];
    let retention = [("HYPERFLEET_AUDIT_RETENTION", "20years")];
    let (code, output, said) = audit_with(&retention, &args).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(
        output.contains("Checked: older than audit.retention, 20years.\n"),
        "{output}"
    );
    // The last removed pass, and the first one of the export; the origin has no entries.
    assert!(output.contains("Faults: 2.\n"), "{output}");
    let fault = "it was removed too early: its newest entry is of 2026-01-01T10:00:00Z\n";
    assert_eq!(output.matches(fault).count(), 1, "{output}");
}

/// A trail that never existed and one that was removed entirely look the same.
#[tokio::test]
async fn a_missing_newest_pass_is_found_only_by_an_export() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    sealed.export_to(&file).await;
    sealed
        .tamper("DELETE FROM audit_entries WHERE name ~ '^(acme|beta)-2'; DELETE FROM audit_passes WHERE number = 3")
        .await;
    assert_eq!(sealed.faults().await, []);
    let report = sealed
        .report(&["--against", file.to_str().unwrap()], 3)
        .await;
    let kinds: Vec<_> = report["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| &fault["kind"])
        .collect();
    assert_eq!(kinds, ["missing"], "{report}");
}

/// Only an export that is stored elsewhere reveals it.
#[tokio::test]
async fn a_trail_that_was_sealed_again_differs_from_an_export() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    let path = file.to_str().unwrap();
    sealed.export_to(&file).await;
    let report = sealed.report(&["--against", path], 0).await;
    assert_eq!(report["compared"]["passes"], 4, "{report}");
    let hash = report["last"]["hash"].as_str().unwrap();
    sealed.report(&["--hash", hash], 0).await;
    sealed
        .tamper("UPDATE audit_entries SET actor = 'mallory' WHERE name = 'acme-1-0'; DELETE FROM audit_passes WHERE number > 1")
        .await;
    sealed.seal().await;
    sealed.report(&[], 0).await;
    let report = sealed.report(&["--against", path], 3).await;
    let kinds: Vec<_> = report["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| &fault["kind"])
        .collect();
    // One pass has the entries of two.
    assert_eq!(kinds, ["rewritten", "missing"], "{report}");
    let report = sealed.report(&["--hash", hash], 3).await;
    assert_eq!(report["faults"][0]["kind"], "missing", "{report}");
}

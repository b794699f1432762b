//! Changes of the trail by SQL, which a superuser can make, are found.

use std::time::Duration;

use hyperfleet::app::trail::{TrailRange, TrailReader};
use hyperfleet::domain::audit::RetentionRule;

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
    DELETE FROM audit_seals WHERE number = 2";
/// The third pass follows the first one.
const MENDED_BEGIN: &str =
    "UPDATE audit_seals s SET begin_era = o.end_era, begin_commit_order = o.end_commit_order,
        begin_sequence = o.end_sequence
    FROM audit_seals o WHERE o.number = 1 AND o.tenancy = s.tenancy AND s.number = 3";
/// Only the last pass is left, and marked heads of the chains.
const FORGED_REMOVAL: &str =
    "DELETE FROM audit_entries WHERE name !~ '^(acme|beta)-2'; DELETE FROM audit_seals WHERE number = 1;
    UPDATE audit_seals SET removed_at = now() WHERE number = 2";
/// The mark of a retention of an hour at 13:00.
const PLAUSIBLE: &str = "UPDATE audit_seals SET removed_at = '2026-01-01T13:00:00Z', removed_before = '2026-01-01T12:00:00Z'";
const SAVE: &str = "CREATE TABLE saved_entries AS TABLE audit_entries; CREATE TABLE saved_seals AS TABLE audit_seals";
const RESTORE: &str = "TRUNCATE audit_entries, audit_seals;
    INSERT INTO audit_seals SELECT * FROM saved_seals;
    INSERT INTO audit_entries (sequence, at, resource_id, generation_before, generation_after, action, actor, request_id,
                               kind, name, reason, tenancy, era, commit_order)
    OVERRIDING SYSTEM VALUE
    SELECT sequence, at, resource_id, generation_before, generation_after, action, actor, request_id, kind, name, reason,
           tenancy, era, commit_order FROM saved_entries";

/// A change by SQL, and the faults that it causes: their kinds, with the numbers of seals.
type Tampering<'a> = (&'a str, &'a [(&'a str, Option<i64>)]);

/// Executes each of these alone, and compares the faults with the expected ones.
async fn assert_found(cases: &[Tampering<'_>]) {
    let sealed = Sealed::filled().await;
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
    assert_found(&[
        (
            "UPDATE audit_entries SET actor = 'mallory' WHERE name = 'acme-1-0'",
            &[("hash", Some(2))],
        ),
        (
            "UPDATE audit_entries SET at = at + interval '1 us' WHERE name = 'acme-1-0'",
            &[("bounds", Some(2)), ("hash", Some(2))],
        ),
        (
            "UPDATE audit_entries SET reason = '' WHERE name = 'acme-2-2'",
            &[("hash", Some(3))],
        ),
        (
            "DELETE FROM audit_entries WHERE name = 'acme-1-1'",
            &[("entries", Some(2))],
        ),
        (
            "DELETE FROM audit_entries WHERE name = 'acme-0-0'",
            &[("entries", Some(1))],
        ),
        (INSERT, &[("entries", Some(2))]),
        (SWAP, &[("hash", Some(2))]),
        (
            "UPDATE audit_entries SET tenancy = '{\"org\": \"beta\"}' WHERE name = 'acme-1-1'",
            &[("entries", Some(2)), ("entries", Some(2))],
        ),
        (
            "UPDATE audit_entries SET tenancy = '{}' WHERE name = 'acme-1-1'",
            &[("entries", Some(2)), ("unsealed", None)],
        ),
    ])
    .await;
}

#[tokio::test]
async fn every_change_of_seals_is_found() {
    assert_found(&[
        (
            "UPDATE audit_seals SET hash = previous WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("hash", Some(2)), ("pass", Some(2)), ("link", Some(3))],
        ),
        (
            "UPDATE audit_seals SET previous = hash WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("link", Some(2)), ("hash", Some(2)), ("pass", Some(2))],
        ),
        (
            "UPDATE audit_seals SET entries = 4 WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("entries", Some(2)), ("pass", Some(2))],
        ),
        (
            "UPDATE audit_seals SET number = 7 WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("number", Some(7)), ("pass", Some(7)), ("number", Some(3))],
        ),
        (
            "UPDATE audit_seals SET newest_at = now() WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("bounds", Some(2)), ("uneven", Some(2)), ("pass", Some(2))],
        ),
        (
            "DELETE FROM audit_seals WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("unsealed", None), ("pass", Some(2)), ("number", Some(3))],
        ),
        (
            "UPDATE audit_seals SET sealed_at = now() WHERE number = 2",
            &[("pass", Some(2))],
        ),
        (
            "UPDATE audit_seals SET pass_hash = hash WHERE number = 2 AND tenancy @> '{\"org\": \"beta\"}'",
            &[("uneven", Some(2))],
        ),
        // A pass disappears with its entries: the next one does not begin where the one before it ended.
        (
            WITHOUT_SECOND_PASS,
            &[
                ("gap", Some(3)),
                ("pass_link", Some(3)),
                ("number", Some(3)),
                ("number", Some(3)),
            ],
        ),
        // The same, and the next one pretends to.
        (
            &format!("{WITHOUT_SECOND_PASS}; {MENDED_BEGIN}"),
            &[
                ("pass_link", Some(3)),
                ("number", Some(3)),
                ("number", Some(3)),
                ("pass", Some(3)),
            ],
        ),
        // A part that pretends to be removed by retention.
        (
            "UPDATE audit_seals SET removed_at = now(), removed_before = '2026-01-01T12:00:00Z' WHERE number = 2",
            &[("unmarked", Some(1)), ("unmarked", Some(1))],
        ),
    ])
    .await;
}

/// The seals and entries of the other tenancy stay, so that every chain is whole in itself.
#[tokio::test]
async fn the_newest_part_of_one_tenant_cannot_be_removed() {
    assert_found(&[
        (
            "DELETE FROM audit_entries WHERE name LIKE 'acme-2-%';
             DELETE FROM audit_seals WHERE number = 3 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("pass", Some(3))],
        ),
        (
            "DELETE FROM audit_entries WHERE name ~ '^acme-[12]-';
             DELETE FROM audit_seals WHERE number > 1 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("pass", Some(2)), ("pass", Some(3))],
        ),
        (
            "DELETE FROM audit_entries WHERE name LIKE 'acme-%';
             DELETE FROM audit_seals WHERE tenancy @> '{\"org\": \"acme\"}'",
            &[("pass", Some(1)), ("pass", Some(2)), ("pass", Some(3))],
        ),
    ])
    .await;
}

/// Everything but the last pass, with marks of retention on what must stay for the chains.
#[tokio::test]
async fn marks_of_retention_do_not_hide_the_removal_of_young_entries() {
    let early = &[("early", Some(2)), ("early", Some(2))][..];
    assert_found(&[
        (FORGED_REMOVAL, early),
        (
            &format!("{FORGED_REMOVAL}; UPDATE audit_seals SET removed_before = removed_at WHERE number = 2"),
            early,
        ),
        // Old enough by the mark, but an hour is the least retention: the last pass is of 12:00, and it is 13:00.
        (
            "DELETE FROM audit_entries; DELETE FROM audit_seals WHERE number < 3;
             UPDATE audit_seals SET removed_at = '2030-01-01', removed_before = '2029-01-01',
                                    newest_at = '2026-01-01T12:30:00Z'",
            &[("early", Some(3)), ("early", Some(3)), ("pass", Some(3))],
        ),
        // A time that is old enough is not the one that was sealed.
        (
            &format!("{FORGED_REMOVAL}; {PLAUSIBLE}, newest_at = '2025-12-01' WHERE number = 2"),
            &[("pass", Some(2))],
        ),
        (
            &format!("{FORGED_REMOVAL}; {PLAUSIBLE} WHERE number = 2; DELETE FROM audit_seals WHERE number = 2
                      AND tenancy @> '{{\"org\": \"beta\"}}'"),
            &[("number", Some(3)), ("pass", Some(2))],
        ),
    ])
    .await;
}

/// A mark may say anything; the setting is not in the database.
#[tokio::test]
async fn removals_are_compared_with_the_setting() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    let path = file.to_str().unwrap();
    sealed.export_to(&file).await;
    let sql = format!("{FORGED_REMOVAL}; {PLAUSIBLE} WHERE number = 2");
    sealed.tamper(&sql).await;
    for (hours, expected) in [(1, 0), (2, 0), (3, 2)] {
        let kept = Duration::from_hours(hours);
        let rule = RetentionRule::new(sealed.now(), Some(kept));
        let mut reader = TrailReader::open(&sealed.api.database.store())
            .await
            .unwrap();
        let range = TrailRange::default();
        let verification = reader.verify(range, rule, &|_| ()).await.unwrap();
        reader.close().await.unwrap();
        let faults = verification.trail.faults;
        assert_eq!(faults.total, expected, "{hours} h: {faults:?}");
    }
    let (code, output, said) = sealed.audit(&["verify"]).await;
    assert_eq!(code, Some(0), "{said}");
    let expected = "Removed by retention: passes with entries up to 2026-01-01T11:00:00Z. \
                    Checked: older than 1h, because audit.retention is not set here.\n";
    assert!(output.contains(expected), "{output}");
    let url = sealed.api.database.url();
    let args = ["verify", "--database-url", &url, "--against", path];
    let kept = [("HYPERFLEET_AUDIT_RETENTION", "20years")];
    let (code, output, said) = audit_with(&kept, &args).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(
        output.contains("Checked: older than audit.retention, 20years.\n"),
        "{output}"
    );
    // The heads of two chains, and the first seals of the export.
    assert!(output.contains("Faults: 4.\n"), "{output}");
    let fault = "it was removed too early: its newest entry is of 2026-01-01T10:00:00Z\n";
    assert_eq!(output.matches(fault).count(), 2, "{output}");
}

/// What was never there and what was cut off as a whole look the same.
#[tokio::test]
async fn a_trail_without_its_newest_pass_differs_only_from_an_earlier_export() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    sealed.export_to(&file).await;
    sealed
        .tamper("DELETE FROM audit_entries WHERE name ~ '^(acme|beta)-2'; DELETE FROM audit_seals WHERE number = 3")
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
    assert_eq!(kinds, ["missing", "missing"], "{report}");
}

/// Only an export that is kept elsewhere shows it.
#[tokio::test]
async fn a_history_that_was_sealed_again_differs_from_an_earlier_export() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    let path = file.to_str().unwrap();
    sealed.export_to(&file).await;
    let report = sealed.report(&["--against", path], 0).await;
    assert_eq!(report["compared"]["seals"], 6, "{report}");
    let times = "SELECT count(DISTINCT end_sequence) FROM audit_seals";
    assert_eq!(sealed.api.count(times).await, 3);
    sealed
        .tamper("UPDATE audit_entries SET actor = 'mallory' WHERE name = 'acme-1-0'; DELETE FROM audit_seals WHERE number > 1")
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
    // Both chains had a second and a third seal; now they have one instead of the two.
    assert_eq!(
        kinds,
        ["rewritten", "rewritten", "missing", "missing"],
        "{report}"
    );
}

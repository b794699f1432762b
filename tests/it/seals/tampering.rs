//! Changes of the trail by SQL, which a superuser can make, are found.

use super::Sealed;

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
            &[("hash", Some(2)), ("link", Some(3))],
        ),
        (
            "UPDATE audit_seals SET previous = hash WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("link", Some(2)), ("hash", Some(2))],
        ),
        (
            "UPDATE audit_seals SET entries = 4 WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("entries", Some(2))],
        ),
        (
            "UPDATE audit_seals SET number = 7 WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("number", Some(7)), ("number", Some(3))],
        ),
        (
            "UPDATE audit_seals SET newest_at = now() WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("bounds", Some(2)), ("uneven", Some(2))],
        ),
        (
            "DELETE FROM audit_seals WHERE number = 2 AND tenancy @> '{\"org\": \"acme\"}'",
            &[("unsealed", None), ("number", Some(3))],
        ),
        // A pass disappears with its entries: the next one does not begin where the one before it ended.
        (
            "DELETE FROM audit_entries WHERE name LIKE '%-1%-%' OR name = 'beta-1'; DELETE FROM audit_seals WHERE number = 2",
            &[("gap", Some(3)), ("number", Some(3)), ("number", Some(3))],
        ),
        // A part that pretends to be removed by retention.
        (
            "UPDATE audit_seals SET removed_at = now() WHERE number = 2",
            &[("unmarked", Some(1)), ("unmarked", Some(1))],
        ),
    ])
    .await;
}

/// Only an export that is kept elsewhere shows it.
#[tokio::test]
async fn a_history_that_was_sealed_again_differs_from_an_earlier_export() {
    let sealed = Sealed::filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.ndjson");
    let path = file.to_str().unwrap();
    let (code, export, said) = sealed.audit(&["export"]).await;
    assert_eq!(code, Some(0), "{said}");
    std::fs::write(&file, export).unwrap();
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

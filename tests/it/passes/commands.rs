//! `hyperfleet-api audit`: what it prints, and what it ends with.

use std::process::Command;

use hyperfleet_testkit::until;
use serde_json::json;

use super::{Sealed, audit};
use crate::support::ACME;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/audit.md");

/// The script of the guide.
fn script() -> String {
    let guide = std::fs::read_to_string(GUIDE).unwrap();
    let (_, after) = guide.split_once("```python\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

#[tokio::test]
async fn verify_prints_what_was_verified() {
    let sealed = Sealed::filled().await;
    sealed.api.speaking(ACME).cluster("unsealed").await;
    let (code, output, said) = sealed.audit(&["verify"]).await;
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<_> = output.lines().collect();
    let [passes, hash, unsealed, faults] = lines[..] else {
        panic!("{output}")
    };
    assert_eq!(
        passes,
        "Passes 1 to 3, sealed from 2026-01-01T10:00:00Z to 2026-01-01T12:00:00Z. Entries: 12."
    );
    let hash = hash.strip_prefix("Hash of pass 3: ").unwrap();
    assert_eq!(
        unsealed,
        "Entries not sealed yet: 1, the oldest of 2026-01-01T13:00:00Z."
    );
    assert_eq!(faults, "No faults.");
    let report = sealed.report(&["--hash", hash], 0).await;
    assert_eq!(report["last"]["hash"], hash, "{report}");
    sealed
        .tamper("UPDATE audit_entries SET actor = 'mallory' WHERE name = 'acme-1-0'")
        .await;
    let (code, output, _) = sealed.audit(&["verify"]).await;
    assert_eq!(code, Some(3), "{output}");
    let (_, faults) = output.split_once("Faults: 1.\npass 2, after 0-").unwrap();
    assert!(
        faults.ends_with(": its entries are not those that were sealed\n"),
        "{output}"
    );
}

#[tokio::test]
async fn verify_as_json_has_the_same() {
    let sealed = Sealed::filled().await;
    let report = sealed.report(&[], 0).await;
    for (end, number, time) in [
        ("first", 1, "2026-01-01T10:00:00.000000Z"),
        ("last", 3, "2026-01-01T12:00:00.000000Z"),
    ] {
        let pass = &report[end]["pass"];
        assert_eq!(pass["number"], number, "{report}");
        assert_eq!(pass["sealed_time"], time, "{report}");
    }
    assert_eq!(report["entries"], 12, "{report}");
    let unsealed = json!({"entries": 0, "oldest_time": null});
    assert_eq!(report["unsealed"], unsealed, "{report}");
    assert_eq!(report["fault_count"], 0, "{report}");
    sealed
        .tamper("DELETE FROM audit_entries WHERE name = 'beta-1'")
        .await;
    let report = sealed.report(&[], 3).await;
    let fault = &report["faults"][0];
    assert_eq!(
        (&fault["kind"], &fault["number"]),
        (&json!("entries"), &json!(2)),
        "{report}"
    );
    assert_eq!(fault["message"], "entries sealed: 4, found: 3", "{report}");
}

/// The script of the guide, the program without a database, and the program with one agree.
#[tokio::test]
async fn an_export_is_verified_elsewhere() {
    let sealed = Sealed::filled().await;
    sealed.api.speaking(ACME).cluster("unsealed").await;
    // An entry is exported once its place in the order is certain: transactions of other tests may delay that.
    until("the last entry is exported", async || {
        sealed.audit(&["export"]).await.1.contains("unsealed")
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let python = write("verify.py", &script());
    let run_script = |file: &str| {
        let output = Command::new("python3")
            .args([&python, file])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (
            output.status.code(),
            text + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (args, passes, entries) in [
        (&["export"][..], 3, 13),
        (&["export", "--tenant", "org=acme"], 3, 10),
        (&["export", "--since", "2026-01-01T11:00:00Z"], 2, 9),
        (&["export", "--until", "2026-01-01T11:00:00Z"], 2, 8),
        (&["export", "--tenant", "org=other"], 3, 0),
    ] {
        let (code, export, said) = sealed.audit(args).await;
        assert_eq!(code, Some(0), "{said}");
        let is_entry = |line: &&str| line.contains("\"action\":");
        assert_eq!(
            export.lines().filter(is_entry).count(),
            entries,
            "{args:?}: {export}"
        );
        let file = write("export.ndjson", &export);
        let (code, printed) = run_script(&file);
        assert_eq!(code, Some(0), "{printed}");
        assert!(
            printed.starts_with(&format!("{passes} passes, 0 faults")),
            "{args:?}: {printed}"
        );
        let (code, output, said) = audit(&["verify", "--file", &file]).await;
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(output.ends_with("No faults.\n"), "{output}");
    }
    assert_tenants_lines_are_bound(&sealed, &write, &run_script).await;
    let (_, export, _) = sealed.audit(&["export"]).await;
    let lines: Vec<_> = export.lines().collect();
    let without = |left_out: usize| {
        let remaining = lines
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != left_out);
        remaining.fold(String::new(), |text, (_, line)| text + line + "\n")
    };
    // The first line is the link before the first pass, the last ones are a link and an entry that is not sealed.
    let sealed_lines = lines.iter().enumerate().take(lines.len() - 2);
    for (left_out, line) in sealed_lines.skip(1) {
        let file = write("damaged.ndjson", &without(left_out));
        let (code, output, _) = audit(&["verify", "--file", &file]).await;
        assert_eq!(code, Some(3), "without {line}: {output}");
    }
    let file = write(
        "changed.ndjson",
        &export.replacen("acme-1-1", "acme-1-x", 1),
    );
    assert_eq!(audit(&["verify", "--file", &file]).await.0, Some(3));
    let (code, printed) = run_script(&file);
    assert_eq!(code, Some(3), "{printed}");
    let file = write("garbage.ndjson", &(export.clone() + "what is this\n"));
    let (code, output, _) = audit(&["verify", "--file", &file]).await;
    assert_eq!(code, Some(3), "{output}");
    let line = lines.len() + 1;
    let expected = format!("line {line} is neither an entry nor a pass");
    assert!(output.contains(&expected), "{output}");
}

/// A tenant's entry that was changed does not lead to the root of its pass any more.
async fn assert_tenants_lines_are_bound(
    sealed: &Sealed,
    write: &impl Fn(&str, &str) -> String,
    run_script: &impl Fn(&str) -> (Option<i32>, String),
) {
    let (_, export, _) = sealed.audit(&["export", "--tenant", "org=acme"]).await;
    assert!(!export.contains("beta"), "{export}");
    let file = write("tenant.ndjson", &export.replacen("acme-1-1", "acme-1-x", 1));
    let (code, output, _) = audit(&["verify", "--file", &file]).await;
    assert_eq!(code, Some(3), "{output}");
    assert!(
        output.starts_with("Entries of one tenant: org=acme.\n"),
        "{output}"
    );
    assert!(
        output.contains("\nFaults: 1.\npass 2, after 0-"),
        "{output}"
    );
    let (code, printed) = run_script(&file);
    assert_eq!(code, Some(3), "{printed}");
}

#[tokio::test]
async fn an_unreadable_file_is_no_fault_of_the_trail() {
    let nowhere = ["--database-url", "postgres://u@127.0.0.1:1/none"];
    let (code, _, said) = audit(&[&["verify"][..], &nowhere].concat()).await;
    assert_eq!(code, Some(1), "{said}");
    let (code, _, said) = audit(&[&["export"][..], &nowhere].concat()).await;
    assert_eq!(code, Some(1), "{said}");
    let (code, _, said) = audit(&["verify", "--file", "/nowhere"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot open /nowhere"), "{said}");
    for args in [
        &["verify", "--since", "yesterday"][..],
        &["verify", "--file", "x", "--against", "y"],
        &["verify", "--hash", "abc"],
        &["export", "--tenant", "acme"],
    ] {
        let (code, _, said) = audit(args).await;
        assert_eq!(code, Some(2), "{said}");
    }
}

//! `hyperfleet-api audit`: what it prints, and what it ends with.

use std::process::Command;

use hyperfleet_testkit::until;
use serde_json::{Value, json};

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
    let (table, rest) = output
        .split_once("Entries not sealed yet: 1, the oldest of 2026-01-01T13:00:00Z")
        .unwrap();
    let expected = "\
TENANT    SEALS  FROM                  TO                    ENTRIES
org=acme  1-3    2026-01-01T10:00:00Z  2026-01-01T12:00:00Z  9
org=beta  1-3    2026-01-01T10:00:00Z  2026-01-01T12:00:00Z  3

";
    assert_eq!(table, expected);
    assert!(rest.ends_with(" s ago).\nNo faults.\n"), "{output}");
    sealed
        .tamper("UPDATE audit_entries SET actor = 'mallory' WHERE name = 'acme-1-0'")
        .await;
    let (code, output, _) = sealed.audit(&["verify"]).await;
    assert_eq!(code, Some(3), "{output}");
    let (_, faults) = output
        .split_once("Faults: 1.\ntenant org=acme, seal 2, after 0-")
        .unwrap();
    assert!(
        faults.ends_with(": its entries are not those that were sealed\n"),
        "{output}"
    );
}

#[tokio::test]
async fn verify_as_json_has_the_same() {
    let sealed = Sealed::filled().await;
    let report = sealed.report(&[], 0).await;
    let chain = json!({
        "tenancy": {"org": "acme"}, "entries": 9,
        "first_number": 1, "first_time": "2026-01-01T10:00:00Z",
        "last_number": 3, "last_time": "2026-01-01T12:00:00Z",
    });
    assert_eq!(report["chains"][0], chain, "{report}");
    assert_eq!(report["unsealed"], json!({"entries": 0}), "{report}");
    assert_eq!(report["fault_count"], 0, "{report}");
    sealed
        .tamper("DELETE FROM audit_entries WHERE name = 'beta-1'")
        .await;
    let report = sealed.report(&[], 3).await;
    let fault = &report["faults"][0];
    assert_eq!(fault["kind"], "bounds", "{report}");
    let fault = &report["faults"][1];
    assert_eq!(fault["kind"], "entries", "{report}");
    assert_eq!(fault["message"], "entries sealed: 1, found: 0", "{report}");
    assert_eq!(
        (&fault["number"], &fault["tenancy"]),
        (&json!(2), &json!({"org": "beta"})),
        "{report}"
    );
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
    for (args, chains, entries) in [
        (&["export"][..], 2, 13),
        (&["export", "--tenant", "org=acme"], 1, 10),
        (&["export", "--since", "2026-01-01T11:00:00Z"], 2, 9),
        (&["export", "--until", "2026-01-01T11:00:00Z"], 2, 8),
        (&["export", "--tenant", "org=other"], 0, 0),
    ] {
        let (code, export, said) = sealed.audit(args).await;
        assert_eq!(code, Some(0), "{said}");
        let lines: Vec<Value> = export
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let count = lines.iter().filter(|line| line["seal"].is_null()).count();
        assert_eq!(count, entries, "{args:?}: {export}");
        let file = write("export.ndjson", &export);
        let (code, printed) = run_script(&file);
        assert_eq!(code, Some(0), "{printed}");
        assert!(
            printed.starts_with(&format!("{chains} chains, 0 faults")),
            "{args:?}: {printed}"
        );
        let (code, output, said) = audit(&["verify", "--file", &file]).await;
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(output.ends_with("No faults.\n"), "{output}");
    }
    let (_, export, _) = sealed.audit(&["export"]).await;
    let lines: Vec<_> = export.lines().collect();
    let without = |left_out: usize| {
        let kept = lines
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != left_out);
        kept.fold(String::new(), |text, (_, line)| text + line + "\n")
    };
    // The last line is not sealed.
    for (left_out, line) in lines.iter().enumerate().take(lines.len() - 1) {
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
    // The newest seal of a tenant, with its entries: the other tenant's stays.
    let newest = |line: &&&str| {
        line.contains("acme-2-") || line.contains("\"number\":3") && line.contains("acme")
    };
    let kept: Vec<_> = lines
        .iter()
        .filter(|line| !newest(line) && !line.contains("unsealed"))
        .copied()
        .collect();
    let file = write("shorter.ndjson", &(kept.join("\n") + "\n"));
    let (code, output, _) = audit(&["verify", "--file", &file]).await;
    assert_eq!(code, Some(3), "{output}");
    let expected = "seals of its pass were removed, added or changed";
    assert!(output.contains(expected), "{output}");
    let (code, printed) = run_script(&file);
    assert_eq!(code, Some(3), "{printed}");
    let file = write("garbage.ndjson", &(export.clone() + "what is this\n"));
    let (code, output, _) = audit(&["verify", "--file", &file]).await;
    assert_eq!(code, Some(3), "{output}");
    let line = lines.len() + 1;
    let expected = format!("line {line} is neither an entry nor a seal");
    assert!(output.contains(&expected), "{output}");
}

#[tokio::test]
async fn what_cannot_be_read_is_no_fault_of_the_trail() {
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
        &["export", "--tenant", "acme"],
    ] {
        let (code, _, said) = audit(args).await;
        assert_eq!(code, Some(2), "{said}");
    }
}

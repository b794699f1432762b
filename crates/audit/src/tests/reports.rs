//! The report as text and as JSON.

use serde_json::json;

use super::{at, entry, sealed, verified};
use crate::{AuditReport, Line, RetentionRule};

/// Two passes, of which the second is damaged, and an unsealed entry.
fn damaged() -> AuditReport {
    let mut lines = sealed(&[vec![entry("a", 1, 1, 0)], vec![entry("a", 2, 2, 0)]]);
    lines.remove(3);
    lines.push(Line::Entry(entry("a", 3, 3, 7)));
    verified(&lines)
}

#[test]
fn a_report_is_text_for_people() {
    let mut report = damaged();
    let hash = report.last.as_ref().unwrap().hash;
    let expected = format!(
        "\
Passes 1 to 2, sealed from 2026-01-01T00:16:40Z to 2026-01-01T00:16:40Z. Entries: 1.
Hash of pass 2: {hash}
Entries not sealed yet: 1, the oldest of 2026-01-01T00:00:07Z.
Faults: 1.
pass 2, after 0-1-1 up to 0-2-2: entries sealed: 1, found: 0
"
    );
    assert_eq!(report.to_string(), expected);
    let lines = sealed(&[vec![entry("a", 1, 1, 0)]]);
    let Line::Link(first) = &lines[2] else {
        unreachable!("the first pass")
    };
    for (retention, checked) in [
        (Some(3_600), "audit.retention, 1h."),
        (None, "1h, because audit.retention is not set here."),
    ] {
        let retention = retention.map(std::time::Duration::from_secs);
        report.check_removed(first, 2, RetentionRule::new(at(9_000), retention));
        let text = report.to_string();
        let removed = format!(
            "Removed by retention: entries up to 2026-01-01T00:00:00Z. Checked: older than {checked}\n\
             Entries that retention has still to remove: 2.\n"
        );
        assert!(text.contains(&removed), "{text}");
    }
}

#[test]
fn a_report_is_json_for_programs() {
    let report = damaged();
    let expected = json!({
        "tenancy": null, "first": report.first, "last": report.last, "entries": 1,
        "unsealed": {"entries": 1, "oldest_time": "2026-01-01T00:00:07Z"},
        "removed": null, "compared": null, "fault_count": 1,
        "faults": [{
            "kind": "entries", "message": "entries sealed: 1, found: 0", "number": 2, "begin": "0-1-1", "end": "0-2-2",
        }],
    });
    assert_eq!(serde_json::to_value(&report).unwrap(), expected);
}

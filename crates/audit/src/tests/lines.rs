//! These bytes are in exports and below hashes: a change of a text breaks every chain.

use super::{at, entry, position, sealed, tenancy};
use crate::{AuditEntry, Hash, Line, Link, Pass, ProvenEntry, read_lines};

fn forced() -> AuditEntry {
    AuditEntry {
        action: "force_delete".to_owned(),
        actor: "ann@example.com".to_owned(),
        generation_after: None,
        generation_before: Some(3),
        kind: "Cluster".to_owned(),
        name: "web".to_owned(),
        position: position(7432, 12),
        reason: Some("it is \"stuck\" \\ – <b>\n\t\u{8}\u{c}\r\u{1}\u{7f}é🦀".to_owned()),
        request_id: "force-1".to_owned(),
        resource_id: "01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
        sequence: 12,
        tenancy: [("project", "web"), ("org", "acme")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        at: "2026-01-01T10:00:03.5Z".parse().unwrap(),
    }
}

#[test]
fn the_bytes_of_an_entry_never_change() {
    let expected = concat!(
        r#"{"action":"force_delete","actor":"ann@example.com","generation_before":3,"kind":"Cluster","name":"web","#,
        r#""position":"0-7432-12","reason":"it is \"stuck\" \\ – <b>\n\t\b\f\r\u0001"#,
        "\u{7f}é🦀\",",
        r#""request_id":"force-1","resource_id":"01890a5d-ac96-774b-bcce-b302099a8057","sequence":12,"#,
        r#""tenancy":{"org":"acme","project":"web"},"time":"2026-01-01T10:00:03.500000Z"}"#,
    );
    assert_eq!(Line::Entry(forced()).to_string(), expected);
}

#[test]
fn the_bytes_of_an_entry_without_optional_members_never_change() {
    let expected = concat!(
        r#"{"action":"create","actor":"ann","generation_after":1,"kind":"Cluster","name":"a","position":"0-7-1","#,
        r#""request_id":"request","resource_id":"00000000-0000-0000-0000-000000000001","sequence":1,"tenancy":{},"#,
        r#""time":"2026-01-01T00:00:03.000000Z"}"#,
    );
    assert_eq!(Line::Entry(entry("", 7, 1, 3)).to_string(), expected);
}

#[test]
fn the_bytes_of_a_pass_never_change() {
    let link = Link {
        hash: Hash([0xab; 32]),
        pass: Pass {
            end: position(7432, 12),
            entries: 2,
            newest_at: "2026-01-01T10:00:03.5Z".parse().unwrap(),
            number: 1,
            previous: Hash::ZERO,
            root: Hash([0xcd; 32]),
            sealed_at: "2026-01-01T10:00:05Z".parse().unwrap(),
        },
    };
    let [zero, hash, root] = ["00", "ab", "cd"].map(|byte| byte.repeat(32));
    let expected = format!(
        concat!(
            r#"{{"hash":"{hash}","pass":{{"end":"0-7432-12","entries":2,"newest_time":"2026-01-01T10:00:03.500000Z","#,
            r#""number":1,"previous":"{zero}","root":"{root}","sealed_time":"2026-01-01T10:00:05.000000Z"}}}}"#,
        ),
        hash = hash,
        zero = zero,
        root = root
    );
    assert_eq!(Line::Link(link).to_string(), expected);
}

#[test]
fn lines_are_read_as_they_were_written() {
    let mut lines = sealed(&[vec![entry("a", 5, 1, 3), entry("", 5, 2, 9)]]);
    lines.extend([
        Line::Entry(forced()),
        Line::Tenant {
            tenancy: tenancy("a"),
        },
        Line::Proven(ProvenEntry {
            entry: forced(),
            index: 3,
            path: vec![Hash::ZERO, Hash([0xab; 32])],
        }),
    ]);
    let texts: Vec<_> = lines.iter().map(Line::to_string).collect();
    let text = texts.join("\n") + "\n";
    let read: Vec<_> = read_lines(text.as_bytes()).map(Result::unwrap).collect();
    let expected: Vec<_> = lines.into_iter().map(Some).collect();
    assert_eq!(read, expected);
}

/// What a reader sees must be what the hash covers.
#[test]
fn other_texts_of_the_same_line_are_refused() {
    let line = Line::Entry(entry("acme", 7, 1, 3)).to_string();
    let parse = |text: &str| Line::parse(text.as_bytes());
    assert!(parse(&line).is_some());
    for (from, to) in [
        ("{\"action\"", "{ \"action\""),
        ("\"sequence\":1", "\"sequence\":1.0"),
        ("03.000000Z", "03.0000001Z"),
        ("03.000000Z", "03Z"),
        ("\"name\":\"a\"", "\"name\":\"b\",\"name\":\"a\""),
        ("\"org\":", "\"org\":\"x\",\"org\":"),
        ("\"sequence\":1", "\"sequence\":1,\"tags\":[]"),
        ("\"name\":\"a\"", "\"name\":\"\\u0061\""),
        ("\"action\":\"create\",", ""),
    ] {
        let other = line.replacen(from, to, 1);
        assert_ne!(other, line, "{from}");
        assert_eq!(parse(&other), None, "{other}");
    }
    for text in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"hash":"","pass":{}}"#,
        "\u{feff}{}",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn a_line_without_end_is_no_line() {
    let long = format!("\"{}\"", "x".repeat(3 * 1024 * 1024));
    let lines: Vec<_> = read_lines(long.as_bytes()).map(Result::unwrap).collect();
    assert_eq!(lines, [None, None, None, None]);
}

#[test]
fn a_hash_is_read_as_it_was_printed() {
    let hash = Hash(std::array::from_fn(|index| {
        u8::try_from(index * 8 % 256).unwrap()
    }));
    let text = hash.to_string();
    assert_eq!(Hash::parse(&text), Some(hash));
    assert!(text.starts_with("000810182028"), "{text}");
    for wrong in [
        "",
        "00",
        &text[1..],
        &(text.clone() + "0"),
        &text.to_uppercase(),
        &"+1".repeat(32),
        &"é".repeat(32),
    ] {
        assert_eq!(Hash::parse(wrong), None, "{wrong}");
    }
    assert_eq!(entry("", 1, 1, 0).at, at(0));
}

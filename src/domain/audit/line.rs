//! The exact text of an entry, as exports have it. Seals hash these bytes, so they must never change: members
//! sorted by name, unset members absent, no blanks, times in UTC with six digits.

use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};

use super::{AuditEntry, TrailPosition};
use crate::domain::Tenancy;

/// An entry with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailEntry {
    pub position: TrailPosition,
    pub entry: AuditEntry,
}

impl TrailEntry {
    /// Its text, without a line break.
    pub fn line(&self) -> String {
        let AuditEntry {
            sequence,
            origin,
            change,
            tenancy,
        } = &self.entry;
        let mut object = ObjectText::default();
        object.text("action", change.action.into_str());
        object.text("actor", &origin.actor);
        if let Some(generation) = change.generation_after {
            object.number("generation_after", generation.into());
        }
        if let Some(generation) = change.generation_before {
            object.number("generation_before", generation.into());
        }
        object.text("kind", &change.kind);
        object.text("name", &change.name);
        object.text("position", &self.position.to_string());
        if let Some(reason) = &change.reason {
            object.text("reason", reason);
        }
        object.text("request_id", &origin.request_id);
        object.text("resource_id", &change.id.to_string());
        object.number("sequence", *sequence);
        object.tenancy("tenancy", tenancy);
        object.time("time", origin.at);
        object.end()
    }
}

/// Writes a JSON object, member by member. Independent of any library, whose output might change.
#[derive(Default)]
pub(super) struct ObjectText(String);

impl ObjectText {
    fn name(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        push_text(&mut self.0, name);
        self.0.push(':');
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        push_text(&mut self.0, value);
    }

    pub(super) fn number(&mut self, name: &str, value: i64) {
        self.name(name);
        self.0.push_str(&value.to_string());
    }

    pub(super) fn time(&mut self, name: &str, at: DateTime<Utc>) {
        self.text(name, &at.to_rfc3339_opts(SecondsFormat::Micros, true));
    }

    pub(super) fn tenancy(&mut self, name: &str, tenancy: &Tenancy) {
        self.name(name);
        let mut members = Self::default();
        for (key, value) in tenancy {
            members.text(key, value);
        }
        self.0.push_str(&members.end());
    }

    pub(super) fn end(self) -> String {
        if self.0.is_empty() {
            return "{}".to_owned();
        }
        self.0 + "}"
    }
}

/// A JSON string with the escapes that JSON requires, and no others.
fn push_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Change, ChangeOrigin};
    use super::*;
    use crate::domain::ResourceId;

    fn entry() -> TrailEntry {
        TrailEntry {
            position: TrailPosition {
                era: 0,
                commit_order: 7432,
                sequence: 12,
            },
            entry: AuditEntry {
                sequence: 12,
                origin: ChangeOrigin {
                    actor: "ann@example.com".to_owned(),
                    request_id: "force-1".to_owned(),
                    at: "2026-01-01T10:00:03.5Z".parse().unwrap(),
                },
                change: Change {
                    action: Action::ForceDelete,
                    kind: "Cluster".to_owned(),
                    id: ResourceId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
                    name: "web".to_owned(),
                    generation_before: Some(3),
                    generation_after: None,
                    reason: Some(
                        "it is \"stuck\" \\ – <b>\n\t\u{8}\u{c}\r\u{1}\u{7f}é🦀".to_owned(),
                    ),
                },
                tenancy: [("project", "web"), ("org", "acme")]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            },
        }
    }

    /// These bytes are in exports and below hashes: a change of this text breaks every chain.
    #[test]
    fn the_bytes_of_an_entry_never_change() {
        let expected = concat!(
            r#"{"action":"force_delete","actor":"ann@example.com","generation_before":3,"kind":"Cluster","name":"web","#,
            r#""position":"0-7432-12","reason":"it is \"stuck\" \\ – <b>\n\t\b\f\r\u0001"#,
            "\u{7f}é🦀\",",
            r#""request_id":"force-1","resource_id":"01890a5d-ac96-774b-bcce-b302099a8057","sequence":12,"#,
            r#""tenancy":{"org":"acme","project":"web"},"time":"2026-01-01T10:00:03.500000Z"}"#,
        );
        assert_eq!(entry().line(), expected);
    }

    #[test]
    fn the_bytes_of_an_entry_without_optional_members_never_change() {
        let mut plain = entry();
        plain.entry.change = Change {
            action: Action::Create,
            generation_before: None,
            generation_after: Some(1),
            reason: None,
            ..plain.entry.change
        };
        plain.entry.tenancy.clear();
        plain.entry.origin.at = "2026-01-01T10:00:00Z".parse().unwrap();
        let expected = concat!(
            r#"{"action":"create","actor":"ann@example.com","generation_after":1,"kind":"Cluster","name":"web","#,
            r#""position":"0-7432-12","request_id":"force-1","resource_id":"01890a5d-ac96-774b-bcce-b302099a8057","#,
            r#""sequence":12,"tenancy":{},"time":"2026-01-01T10:00:00.000000Z"}"#,
        );
        assert_eq!(plain.line(), expected);
    }
}

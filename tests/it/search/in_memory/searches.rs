//! Searches of every form about given resources.

use chrono::{DateTime, FixedOffset, SecondsFormat, TimeDelta, Utc};
use hyperfleet_domain::{EntityRegistry, Resource, ResourceId};

use super::resources::{ACTORS, CONDITIONS, LABELS, TEXTS, text, time};
use crate::support::Random;

/// Where a search finds its values: mostly in one of the resources, so that it matches some of them.
struct Asked<'a> {
    random: &'a mut Random,
    about: &'a Resource,
    kinds: &'a EntityRegistry,
}

/// A valid search, but for limits of its size.
pub(super) fn any(random: &mut Random, resources: &[Resource], kinds: &EntityRegistry) -> String {
    let about = &resources[random.below(resources.len())];
    let depth = random.below(4);
    let mut asked = Asked {
        random,
        about,
        kinds,
    };
    asked.sentence(depth)
}

/// Fields whose values are texts.
const TEXT_FIELDS: [&str; 9] = [
    "id",
    "kind",
    "name",
    "href",
    "created_by",
    "updated_by",
    "deleted_by",
    "owner_id",
    "owner_kind",
];
const SPEC_FIELDS: [&str; 22] = [
    "spec.a",
    "spec.a",
    "spec.b",
    "spec.b",
    "spec.n",
    "spec.n",
    "spec.nested",
    "spec.list",
    "spec.nested.region",
    "spec.nested.region",
    "spec.nested.list",
    "spec.nested.list.0",
    "spec.nested.0",
    "spec.nested.zz",
    "spec.list.0",
    "spec.list.00",
    "spec.list.1",
    "spec.list.1_0",
    "spec.list.99999999999999999999",
    "spec.list.0.region",
    "spec.missing",
    "spec.a.b.c",
];
const TIME_FIELDS: [&str; 3] = ["created_time", "updated_time", "deleted_time"];
const NUMBERS: [&str; 25] = [
    "0",
    "1",
    "-1",
    "1.0",
    "1.5",
    "2.5",
    "3",
    "1000",
    "1e3",
    "1k",
    "1Ki",
    "1.5M",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551615",
    "1e16",
    "1e21",
    "1e300",
    "-1e300",
    "0.0000001",
    "1e-300",
    "0.1",
    "-0.0",
    "123456.789",
    "1000000000000000000000000000000.00000000001",
];

impl Asked<'_> {
    fn sentence(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.test();
        }
        let one = self.sentence(depth - 1);
        match self.random.below(8) {
            0..3 => format!("({one}) and ({})", self.sentence(depth - 1)),
            3..5 => format!("{one} OR {}", self.sentence(depth - 1)),
            5 => format!("not ({one} or {})", self.sentence(depth - 1)),
            6 => format!("not not ({one})"),
            _ => format!("not ({one})"),
        }
    }

    fn test(&mut self) -> String {
        match self.random.below(12) {
            0..3 => {
                let field = self.text_field();
                self.text_test(&field)
            }
            3..6 => {
                let field = self.random.pick(&SPEC_FIELDS).to_owned();
                if self.random.below(2) == 0 {
                    self.number_test(&field)
                } else {
                    self.text_test(&field)
                }
            }
            6 => {
                let field = self.label();
                self.text_test(&field)
            }
            7 => self.time_test(),
            8 => self.integer_test(),
            9 | 10 => self.status_test(),
            _ => self.test_of_two(),
        }
    }

    fn text_field(&mut self) -> String {
        match self.random.below(10) {
            0 => "owner_href".to_owned(),
            _ => self.random.pick(&TEXT_FIELDS).to_owned(),
        }
    }

    fn label(&mut self) -> String {
        format!("labels.{}", self.random.pick(&LABELS))
    }

    fn comparison(&mut self) -> &'static str {
        self.random
            .pick(&["=", "==", "!=", "<>", "<", "<=", ">", ">="])
    }

    fn not(&mut self) -> &'static str {
        self.random.pick(&["", "", "not "])
    }

    /// Tests that fields of every type have, with values that `value` writes.
    fn any_test(&mut self, field: &str, mut value: impl FnMut(&mut Self) -> String) -> String {
        let (sign, not) = (self.comparison(), self.not());
        let (one, other) = (value(self), value(self));
        match self.random.below(7) {
            0..2 => format!("{field} {sign} {one}"),
            2 => format!("{one} {sign} {field}"),
            3 => format!("{field} {not}in ({one}, {other})"),
            4 => format!("{field} {not}between {one} and {other}"),
            5 => format!("{field} is {not}null"),
            _ => format!("{field} {not}in {}", self.random.pick(&["[]", "()"])),
        }
    }

    fn text_test(&mut self, field: &str) -> String {
        if self.random.below(3) > 0 {
            let name = field.to_owned();
            return self.any_test(field, move |asked| asked.text_value(&name));
        }
        let like = self.random.pick(&["like", "ilike", "LIKE", "ILike"]);
        let (not, text) = (self.not(), self.text_of(field));
        format!("{field} {not}{like} {}", quoted(&self.pattern(&text)))
    }

    /// A value of the field, mostly one that the resource has.
    fn text_of(&mut self, field: &str) -> String {
        let state = &self.about.state;
        let found = match field {
            "id" => Some(state.id.to_string()),
            "kind" => Some(state.kind.clone()),
            "name" => Some(state.name.as_str().to_owned()),
            "href" => Some(self.kinds.href(&state.kind, state.id, state.owner)),
            "owner_href" => state
                .owner
                .map(|owner| self.kinds.flat_href("Cluster", owner)),
            "owner_id" => state.owner.as_ref().map(ResourceId::to_string),
            "owner_kind" => Some("Cluster".to_owned()),
            "created_by" => Some(self.about.created_by.clone()),
            "updated_by" => Some(self.about.updated_by.clone()),
            "deleted_by" => state.deletion.as_ref().map(|deletion| deletion.by.clone()),
            _ => match field.strip_prefix("labels.") {
                Some(key) => self.about.labels.get(key).map(ToOwned::to_owned),
                None => self.text_of_spec(field),
            },
        };
        match (found, self.random.below(6)) {
            (Some(found), 0) => found.to_uppercase(),
            (Some(found), 1..5) => found,
            _ if field.ends_with("_by") => self.random.pick(&ACTORS).to_owned(),
            _ => text(self.random),
        }
    }

    /// As answers have it: of an array or an object this is not what the database compares.
    fn text_of_spec(&self, field: &str) -> Option<String> {
        let pointer = field.strip_prefix("spec")?.replace('.', "/");
        let (first, rest) = pointer
            .strip_prefix('/')?
            .split_once('/')
            .unwrap_or((&pointer[1..], ""));
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!("/{rest}")
        };
        let found = self.about.spec.get(first)?.pointer(&rest)?;
        match found {
            serde_json::Value::String(text) => Some(text.clone()),
            // With the blanks of the database, if it is a flat array.
            other => Some(other.to_string().replace(',', ", ")),
        }
    }

    fn text_value(&mut self, field: &str) -> String {
        match self.random.below(12) {
            0 => self.random.pick(&["true", "false"]).to_owned(),
            // Numbers beside texts are texts, too.
            1 if !field.starts_with("spec.") => self.random.pick(&NUMBERS).to_owned(),
            _ => {
                let text = self.text_of(field);
                quoted(&text)
            }
        }
    }

    /// A pattern that a text may match.
    fn pattern(&mut self, text: &str) -> String {
        let mut pattern = String::new();
        if self.random.below(3) == 0 {
            pattern.push('%');
        }
        for character in text.chars().take(80) {
            match self.random.below(16) {
                0 => pattern.push('_'),
                1 => pattern.push('%'),
                2 => pattern.push_str("%%_"),
                3 => pattern.extend(character.to_lowercase()),
                4 => {}
                _ if "%_\\".contains(character) || self.random.below(12) == 0 => {
                    pattern.push('\\');
                    pattern.push(character);
                }
                _ => pattern.push(character),
            }
        }
        if text.len() > 80 || self.random.below(3) == 0 {
            pattern.push('%');
        }
        while pattern.len() > 250 {
            pattern.pop();
        }
        // An escape needs a character after it.
        let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
        if escapes % 2 == 1 {
            pattern.push('\\');
        }
        pattern
    }

    fn number_test(&mut self, field: &str) -> String {
        self.any_test(field, |asked| asked.random.pick(&NUMBERS).to_owned())
    }

    fn integer_test(&mut self) -> String {
        const GENERATIONS: [&str; 6] = ["1", "2", "2.0", "3", "2147483647", "0"];
        if self.random.below(2) == 0 {
            return self.any_test("generation", |asked| {
                let values = [
                    "1",
                    "2",
                    "3",
                    "30e-1",
                    "2147483647",
                    "3e9",
                    "9223372036854775807",
                ];
                asked.random.pick(&values).to_owned()
            });
        }
        let field = format!("{}.observed_generation", self.condition());
        self.any_test(&field, |asked| asked.random.pick(&GENERATIONS).to_owned())
    }

    fn condition(&mut self) -> String {
        let kind = self.random.pick(&CONDITIONS);
        let kind = if self.random.below(12) == 0 {
            "Nothing"
        } else {
            kind
        };
        format!("status.conditions.{kind}")
    }

    fn time_test(&mut self) -> String {
        if self.random.below(2) == 0 {
            let field = self.random.pick(&TIME_FIELDS);
            return self.any_test(field, |asked| match asked.random.below(5) {
                0 => asked
                    .random
                    .pick(&["2026-01-01", "'2026-01-02'"])
                    .to_owned(),
                _ => asked.time_value(),
            });
        }
        let part = self
            .random
            .pick(&["last_updated_time", "last_transition_time"]);
        let field = format!("{}.{part}", self.condition());
        self.any_test(&field, Self::time_value)
    }

    fn time_value(&mut self) -> String {
        let at = time(self.random);
        let (at, east): (DateTime<Utc>, _) = match self.random.below(5) {
            // Cut to a microsecond.
            0 => (at + TimeDelta::nanoseconds(999), 0),
            1 => (at, 7_200),
            2 => (at, -12_600),
            _ => (at, 0),
        };
        let zone = FixedOffset::east_opt(east).unwrap();
        let text = at
            .with_timezone(&zone)
            .to_rfc3339_opts(SecondsFormat::AutoSi, true);
        format!("'{text}'")
    }

    fn status_test(&mut self) -> String {
        let field = self.condition();
        let status = self.random.pick(&["True", "False", "Unknown"]);
        let other = self.random.pick(&["True", "False", "Unknown"]);
        let not = self.not();
        match self.random.below(7) {
            0 | 1 => format!("{field} = '{status}'"),
            2 => format!("{field} != '{status}'"),
            3 => format!("{field} {not}in ('{status}', '{other}')"),
            4 => format!("{field} is {not}null"),
            5 => format!("{field} {not}in []"),
            _ => format!(
                "{field} {not}ilike '{}'",
                self.random.pick(&["t%", "%E", "____", "Unknown"])
            ),
        }
    }

    /// A comparison of two fields of one type.
    fn test_of_two(&mut self) -> String {
        let condition = self.condition();
        let sign = self.comparison();
        let is_equal = self.random.pick(&["=", "!="]);
        let (label, text) = (self.label(), self.text_field());
        let (one, other) = (
            self.random.pick(&SPEC_FIELDS),
            self.random.pick(&SPEC_FIELDS),
        );
        let (time, later) = (
            self.random.pick(&TIME_FIELDS),
            self.random.pick(&TIME_FIELDS),
        );
        match self.random.below(9) {
            0 => format!("{one} {sign} {other}"),
            1 => format!("{one} {sign} {label}"),
            2 => format!("{text} {sign} {label}"),
            3 => format!("created_by {sign} updated_by"),
            4 => format!("{time} {sign} {later}"),
            5 => format!("{condition}.last_updated_time {sign} {time}"),
            6 => format!("generation {sign} {condition}.observed_generation"),
            7 => format!("{condition} {is_equal} status.conditions.Reconciled"),
            _ => format!("{text} {sign} {}", self.text_field()),
        }
    }
}

/// A text as searches write it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

#[test]
fn every_awkward_text_can_be_asked_for() {
    for text in TEXTS {
        let search = format!("labels.a = {}", quoted(text));
        let filter = hyperfleet_domain::tsl::parse(&search).unwrap();
        assert!(
            format!("{filter:?}").contains(&format!("{text:?}")),
            "{search}"
        );
    }
}

//! Sparse answers: `fields=name,status.conditions.type`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::domain::shown;
use hyperfleet_server_kit::json;

/// Members that can be selected as a whole.
pub(super) const WHOLE: [&str; 15] = [
    "created_by",
    "created_time",
    "deleted_by",
    "deleted_time",
    "generation",
    "href",
    "id",
    "kind",
    "labels",
    "name",
    "references",
    "spec",
    "tenancy",
    "updated_by",
    "updated_time",
];
const OF_OWNER: [&str; 3] = ["href", "id", "kind"];
const OF_CONDITION: [&str; 8] = [
    "created_time",
    "last_transition_time",
    "last_updated_time",
    "message",
    "observed_generation",
    "reason",
    "status",
    "type",
];

/// Names that no resource, or no condition, has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The following field(s) doesn't exist in `{of}`: {}", names.join(", "))]
pub struct UnknownFields {
    of: &'static str,
    names: Vec<String>,
}

/// The selected members of a resource: always the id, and those that the client names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    whole: BTreeSet<&'static str>,
    of_owner: BTreeSet<&'static str>,
    of_condition: BTreeSet<&'static str>,
}

impl Fields {
    /// Every name that can be selected.
    pub(super) fn names() -> impl Iterator<Item = String> {
        let parts = |of: &'static str, names: &'static [&str]| {
            let all = names.iter().chain(&["*"]);
            all.map(move |name| format!("{of}.{name}"))
        };
        let whole = WHOLE
            .iter()
            .chain(&["owner_references", "status.conditions", "status.*"]);
        let whole = whole.map(ToString::to_string);
        whole
            .chain(parts("owner_references", &OF_OWNER))
            .chain(parts("status.conditions", &OF_CONDITION))
    }

    /// Reads the names. `None` of no names: every member is selected.
    ///
    /// # Errors
    ///
    /// Every name that a resource does not have, in their order; or else every one that a condition does not have.
    pub(super) fn parse<'a>(
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Self>, UnknownFields> {
        let mut fields = Self::default();
        let (mut of_resource, mut of_condition) = (Vec::new(), Vec::new());
        let mut is_empty = true;
        for name in names {
            is_empty = false;
            if fields.add(name) {
                continue;
            }
            match name.strip_prefix("status.conditions.") {
                Some(_) => of_condition.push(shown(name)),
                None => of_resource.push(shown(name)),
            }
        }
        let unknown = |of, names: Vec<String>| Err(UnknownFields { of, names });
        if !of_resource.is_empty() {
            return unknown("Resource", of_resource);
        }
        if !of_condition.is_empty() {
            return unknown("ResourceCondition", of_condition);
        }
        fields.whole.insert("id");
        Ok((!is_empty).then_some(fields))
    }

    fn add(&mut self, name: &str) -> bool {
        match name {
            "status.*" | "status.conditions" | "status.conditions.*" => {
                self.of_condition.extend(OF_CONDITION);
                return true;
            }
            "owner_references" | "owner_references.*" => {
                self.of_owner.extend(OF_OWNER);
                return true;
            }
            _ => {}
        }
        let (known, wanted, name): (&[&'static str], _, _) =
            if let Some(name) = name.strip_prefix("status.conditions.") {
                (&OF_CONDITION, &mut self.of_condition, name)
            } else if let Some(name) = name.strip_prefix("owner_references.") {
                (&OF_OWNER, &mut self.of_owner, name)
            } else {
                (&WHOLE, &mut self.whole, name)
            };
        let found = known.iter().find(|k| **k == name);
        wanted.extend(found);
        found.is_some()
    }

    /// The selected part of a resource. A selected member that it lacks is `null`.
    pub fn of(&self, resource: &impl Serialize) -> Part {
        // Views are objects of plain names: writing and reading them cannot fail.
        let text = json::to_vec(resource, 0).unwrap_or_default();
        let resource: Members<'_> = serde_json::from_slice(&text).unwrap_or_default();
        let mut sparse = part(&resource, &self.whole);
        if !self.of_owner.is_empty() {
            let owner: Option<Members<'_>> = read(resource.get("owner_references"));
            let owner = owner.map(|owner| part(&owner, &self.of_owner));
            sparse.insert("owner_references", written(&owner));
        }
        if !self.of_condition.is_empty() {
            let status: Members<'_> = read(resource.get("status"));
            let conditions: Vec<Members<'_>> = read(status.get("conditions"));
            let conditions = conditions.iter().map(|c| part(c, &self.of_condition));
            let status = BTreeMap::from([("conditions", conditions.collect::<Vec<_>>())]);
            sparse.insert("status", written(&status));
        }
        sparse
    }
}

/// The members of an object, as text: most are not parsed.
type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

/// Some members of an object.
type Part = BTreeMap<&'static str, Box<RawValue>>;

/// Some members of an object, in alphabetical order. Times are whole seconds, as in sparse answers of the older
/// service.
fn part(members: &Members<'_>, names: &BTreeSet<&'static str>) -> Part {
    let some = names.iter().map(|name| {
        let member = members.get(name).copied().unwrap_or(RawValue::NULL);
        let point = member.get().find('.').filter(|_| name.ends_with("_time"));
        let member = match point {
            Some(point) => written(&format!("{}Z", &member.get()[1..point])),
            None => member.to_owned(),
        };
        (*name, member)
    });
    some.collect()
}

fn read<'a, T: Deserialize<'a> + Default>(member: Option<&&'a RawValue>) -> T {
    let read = member.and_then(|member| serde_json::from_str(member.get()).ok());
    read.unwrap_or_default()
}

fn written(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(names: &str) -> Result<Option<Fields>, UnknownFields> {
        Fields::parse(names.split(',').filter(|name| !name.is_empty()))
    }

    fn sparse(fields: &Fields, resource: &Value) -> Value {
        serde_json::to_value(fields.of(resource)).unwrap()
    }

    fn resource() -> Value {
        json!({
            "created_time": "2026-01-01T10:00:00.123Z",
            "generation": 3,
            "id": "1",
            "labels": {"a": "b"},
            "name": "x",
            "owner_references": {"href": "/o", "id": "2", "kind": "Cluster"},
            "status": {"conditions": [
                {"type": "A", "status": "True", "last_updated_time": "2026-01-01T10:00:00Z"},
                {"type": "B", "status": "False", "reason": "R", "last_updated_time": "2026-01-01T10:00:00.5Z"},
            ]},
        })
    }

    #[test]
    fn what_is_asked_for_is_there_and_the_id() {
        for (names, expected) in [
            ("name", json!({"id": "1", "name": "x"})),
            ("id", json!({"id": "1"})),
            ("name,name,id", json!({"id": "1", "name": "x"})),
            (
                "labels,deleted_time,created_time",
                json!({"created_time": "2026-01-01T10:00:00Z", "deleted_time": null, "id": "1", "labels": {"a": "b"}}),
            ),
            (
                "status.conditions.type,status.conditions.reason",
                json!({"id": "1", "status": {"conditions": [
                    {"type": "A", "reason": null}, {"type": "B", "reason": "R"},
                ]}}),
            ),
            (
                "status.conditions.last_updated_time",
                json!({"id": "1", "status": {"conditions": [
                    {"last_updated_time": "2026-01-01T10:00:00Z"},
                    {"last_updated_time": "2026-01-01T10:00:00Z"},
                ]}}),
            ),
            (
                "owner_references.id",
                json!({"id": "1", "owner_references": {"id": "2"}}),
            ),
            (
                "owner_references",
                json!({"id": "1", "owner_references": {"href": "/o", "id": "2", "kind": "Cluster"}}),
            ),
        ] {
            let fields = fields(names).unwrap().unwrap();
            assert_eq!(sparse(&fields, &resource()), expected, "{names}");
        }
        let all = ["status.*", "status.conditions", "status.conditions.*"];
        let all = all.map(|name| sparse(&fields(name).unwrap().unwrap(), &resource()));
        assert_eq!(
            all[0]["status"]["conditions"][1].as_object().unwrap().len(),
            8
        );
        assert!(all.iter().all(|sparse| *sparse == all[0]));
        let root = fields("owner_references").unwrap().unwrap();
        let root = sparse(&root, &json!({"id": "1"}));
        assert_eq!(root, json!({"id": "1", "owner_references": null}));
        assert_eq!(fields(""), Ok(None));
    }

    #[test]
    fn every_name_that_is_told_can_be_asked_for() {
        let names: Vec<_> = Fields::names().collect();
        assert!(names.len() > 30, "{names:?}");
        for name in names {
            assert!(fields(&name).unwrap().is_some(), "{name}");
        }
    }

    #[test]
    fn what_nobody_has_is_named() {
        for (names, message) in [
            (
                "nmae,id,x.y",
                "The following field(s) doesn't exist in `Resource`: nmae, x.y",
            ),
            (
                "status",
                "The following field(s) doesn't exist in `Resource`: status",
            ),
            (
                "labels.a,spec.b",
                "The following field(s) doesn't exist in `Resource`: labels.a, spec.b",
            ),
            (
                "status.conditions.nope",
                "The following field(s) doesn't exist in `ResourceCondition`: status.conditions.nope",
            ),
            (
                "status.conditions.nope,nope",
                "The following field(s) doesn't exist in `Resource`: nope",
            ),
            (
                "owner_references.name",
                "The following field(s) doesn't exist in `Resource`: owner_references.name",
            ),
        ] {
            assert_eq!(fields(names).unwrap_err().to_string(), message);
        }
    }
}

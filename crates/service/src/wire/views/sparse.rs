//! Writes sparse answers: only the requested members of a stored resource. Members that are stored as JSON text are
//! copied as text. Only conditions are split, into members that are text again.

use std::borrow::Cow;

use serde::ser::{SerializeMap, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{LinkView, Views};
use crate::wire::fields::{Fields, Member, Parts};
use hyperfleet_domain::moment::rfc3339_seconds;
use hyperfleet_domain::{JsonText, StoredResource};
use hyperfleet_server_kit::json::RawMembers;

/// Some members of a resource, in the order of their names. One that the resource could have and has not is `null`. Times
/// are whole seconds, as in sparse answers of the older service.
pub(super) struct SparseView<'a> {
    pub(super) views: Views<'a>,
    pub(super) resource: &'a StoredResource,
    pub(super) fields: &'a Fields,
}

impl Serialize for SparseView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for (member, parts) in self.fields.members() {
            object.serialize_key(member.name())?;
            self.value(member, parts, &mut object)?;
        }
        object.end()
    }
}

impl SparseView<'_> {
    fn value<M: SerializeMap>(
        &self,
        member: Member,
        parts: &Parts,
        object: &mut M,
    ) -> Result<(), M::Error> {
        let (views, resource) = (self.views, self.resource);
        let deletion = resource.deletion.as_ref();
        match member {
            Member::CreatedBy => object.serialize_value(&resource.created_by),
            Member::CreatedTime => object.serialize_value(&rfc3339_seconds(resource.created_at)),
            Member::DeletedBy => object.serialize_value(&deletion.map(|d| &d.by)),
            Member::DeletedTime => object.serialize_value(&deletion.map(|d| rfc3339_seconds(d.at))),
            Member::Generation => object.serialize_value(&resource.generation),
            Member::Href => object.serialize_value(&views.href(resource)),
            Member::Id => object.serialize_value(&resource.id.to_string()),
            Member::Kind => object.serialize_value(&resource.kind),
            Member::Labels => object.serialize_value(&resource.labels),
            Member::Name => object.serialize_value(&resource.name),
            Member::OwnerReferences => {
                let link = views.owner(resource);
                object.serialize_value(&link.map(|link| Owner { link, parts }))
            }
            Member::References => {
                let references = views.references(resource);
                object.serialize_value(&Some(references).filter(|all| !all.is_empty()))
            }
            Member::Spec => object.serialize_value(&resource.spec),
            Member::Status => {
                let conditions = Conditions::read(&resource.conditions, parts);
                object.serialize_value(&Status { conditions })
            }
            Member::Tenancy => object.serialize_value(&resource.tenancy),
            Member::UpdatedBy => object.serialize_value(&resource.updated_by),
            Member::UpdatedTime => object.serialize_value(&rfc3339_seconds(resource.updated_at)),
        }
    }
}

/// Some members of an owner reference.
struct Owner<'a> {
    link: LinkView<'a>,
    parts: &'a Parts,
}

impl Serialize for Owner<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LinkView { href, id, kind } = &self.link;
        let members = [("href", &**href), ("id", id), ("kind", kind)].into_iter();
        serializer.collect_map(members.filter(|(name, _)| self.parts.contains(name)))
    }
}

#[derive(Serialize)]
struct Status<'a> {
    conditions: Conditions<'a>,
}

/// Some members of each condition.
struct Conditions<'a> {
    all: Vec<RawMembers<'a>>,
    parts: &'a Parts,
}

impl<'a> Conditions<'a> {
    fn read(text: &'a JsonText, parts: &'a Parts) -> Self {
        // The database holds an array of objects.
        let all = serde_json::from_str(text.as_str()).unwrap_or_default();
        Self { all, parts }
    }
}

impl Serialize for Conditions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(Some(self.all.len()))?;
        for RawMembers(members) in &self.all {
            let parts = self.parts;
            all.serialize_element(&Condition { members, parts })?;
        }
        all.end()
    }
}

struct Condition<'a> {
    members: &'a [(Cow<'a, str>, &'a RawValue)],
    parts: &'a Parts,
}

impl Serialize for Condition<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.parts.iter().map(|name| {
            let mut members = self.members.iter();
            let member = members.find(|(other, _)| other == name);
            (name, member.map(|(_, value)| without_fraction(name, value)))
        });
        serializer.collect_map(parts)
    }
}

/// A member of a condition.
#[derive(Serialize)]
#[serde(untagged)]
enum ConditionMember<'a> {
    AsStored(&'a RawValue),
    Time(String),
}

/// A time without its fraction, anything else as it is.
fn without_fraction<'a>(name: &str, value: &'a RawValue) -> ConditionMember<'a> {
    let text = value.get().trim_matches('"');
    match text.split_once('.') {
        Some((seconds, _)) if name.ends_with("_time") => {
            ConditionMember::Time(format!("{seconds}Z"))
        }
        _ => ConditionMember::AsStored(value),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use hyperfleet_domain::entity_config::{built_in, registry};
    use hyperfleet_domain::{Deletion, Reference};

    const ID: &str = "019b7654-0000-7000-8000-000000000001";
    const OWNER: &str = "019b7654-0000-7000-8000-000000000002";

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn id(text: &str) -> Uuid {
        text.parse().unwrap()
    }

    fn resource() -> StoredResource {
        let conditions = json!([
            {"type": "A", "status": "True", "last_updated_time": "2026-01-01T10:00:00Z"},
            {"type": "B", "status": "False", "reason": "1.5", "last_updated_time": "2026-01-01T10:00:00.5Z"},
        ]);
        StoredResource {
            id: id(ID).into(),
            kind: "NodePool".to_owned(),
            name: "x".to_owned(),
            owner: Some(id(OWNER).into()),
            generation: 3,
            revision: 1,
            created_at: at("2026-01-01T10:00:00.123Z"),
            created_by: "alice".to_owned(),
            updated_at: at("2026-01-01T10:00:01Z"),
            updated_by: "bob".to_owned(),
            deletion: None,
            references: [].into(),
            spec: JsonText::of(&json!({"replicas": 1.5})),
            labels: JsonText::of(&json!({"a": "b"})),
            tenancy: [].into(),
            conditions: JsonText::of(&conditions),
        }
    }

    fn sparse(names: &str, resource: &StoredResource) -> Value {
        let registry = registry(&built_in()).unwrap();
        let fields = Fields::parse(names.split(',')).unwrap().unwrap();
        let views = Views(&registry);
        let view = SparseView {
            views,
            resource,
            fields: &fields,
        };
        let text = serde_json::to_vec(&view).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        // In alphabetical order, without blanks.
        assert_eq!(String::from_utf8(text).unwrap(), value.to_string());
        value
    }

    #[test]
    fn selected_members_and_the_id_are_present() {
        let path = format!("/api/hyperfleet/v1/clusters/{OWNER}");
        for (names, expected) in [
            ("name", json!({"id": ID, "name": "x"})),
            ("id", json!({"id": ID})),
            ("name,name,id", json!({"id": ID, "name": "x"})),
            (
                "labels,deleted_time,created_time,references,deleted_by",
                json!({"created_time": "2026-01-01T10:00:00Z", "deleted_by": null,
                       "deleted_time": null, "id": ID, "labels": {"a": "b"}, "references": null}),
            ),
            (
                "spec,tenancy,generation,created_by,updated_by,updated_time,kind,href",
                json!({"created_by": "alice", "generation": 3, "href": format!("{path}/nodepools/{ID}"),
                       "id": ID, "kind": "NodePool", "spec": {"replicas": 1.5}, "tenancy": {},
                       "updated_by": "bob", "updated_time": "2026-01-01T10:00:01Z"}),
            ),
            (
                "status.conditions.type,status.conditions.reason",
                json!({"id": ID, "status": {"conditions": [
                    {"type": "A", "reason": null}, {"type": "B", "reason": "1.5"},
                ]}}),
            ),
            (
                "status.conditions.last_updated_time",
                json!({"id": ID, "status": {"conditions": [
                    {"last_updated_time": "2026-01-01T10:00:00Z"},
                    {"last_updated_time": "2026-01-01T10:00:00Z"},
                ]}}),
            ),
            (
                "owner_references.id",
                json!({"id": ID, "owner_references": {"id": OWNER}}),
            ),
            (
                "owner_references",
                json!({"id": ID, "owner_references": {"href": path, "id": OWNER, "kind": "Cluster"}}),
            ),
        ] {
            assert_eq!(sparse(names, &resource()), expected, "{names}");
        }
        let all = ["status.*", "status.conditions", "status.conditions.*"];
        let all = all.map(|name| sparse(name, &resource()));
        assert_eq!(
            all[0]["status"]["conditions"][1].as_object().unwrap().len(),
            8
        );
        assert!(all.iter().all(|sparse| *sparse == all[0]));
    }

    #[test]
    fn rare_members_are_present_where_they_have_values() {
        let target = Reference {
            kind: "Cluster".to_owned(),
            id: id(OWNER).into(),
        };
        let resource = StoredResource {
            kind: "Cluster".to_owned(),
            owner: None,
            deletion: Some(Deletion {
                at: at("2026-01-01T11:00:00.9Z"),
                by: "carol".to_owned(),
            }),
            references: [("peer".to_owned(), vec![target])].into(),
            ..resource()
        };
        let found = sparse(
            "owner_references,deleted_time,deleted_by,references",
            &resource,
        );
        let path = format!("/api/hyperfleet/v1/clusters/{OWNER}");
        let expected = json!({"deleted_by": "carol", "deleted_time": "2026-01-01T11:00:00Z", "id": ID,
                              "owner_references": null,
                              "references": {"peer": [{"href": path, "id": OWNER, "kind": "Cluster"}]}});
        assert_eq!(found, expected);
    }
}

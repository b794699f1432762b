use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

/// A resource as the API shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    pub id: String,
    pub kind: String,
    /// Unique among its owner's resources of that kind, and free again while the resource is being deleted.
    pub name: String,
    pub href: String,
    /// Version of the desired state. Every change adds one, including the deletion.
    pub generation: i64,
    /// When its deletion was requested; `None` for an active resource.
    pub deleted_time: Option<DateTime<Utc>>,
    pub owner: Option<Owner>,
    /// The whole resource as JSON.
    pub document: Value,
}

/// The parent of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Owner {
    pub id: String,
    pub kind: String,
    pub href: String,
}

#[derive(Deserialize)]
struct Members {
    id: String,
    kind: String,
    name: String,
    href: String,
    generation: i64,
    deleted_time: Option<DateTime<Utc>>,
    owner_references: Option<Owner>,
}

impl Resource {
    /// # Errors
    /// A required member is missing or has a wrong type.
    pub(crate) fn read(document: Value) -> Result<Self, serde_json::Error> {
        let members = Members::deserialize(&document)?;
        Ok(Self {
            id: members.id,
            kind: members.kind,
            name: members.name,
            href: members.href,
            generation: members.generation,
            deleted_time: members.deleted_time,
            owner: members.owner_references,
            document,
        })
    }

    /// Whether it is being deleted. It is gone once all adapters have finalized it.
    pub fn is_deleted(&self) -> bool {
        self.deleted_time.is_some()
    }

    /// The desired state.
    pub fn spec(&self) -> &Value {
        &self.document["spec"]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_absent_and_what_is_null_is_not_there() {
        let plain = json!({
            "id": "1", "kind": "NodePool", "name": "np", "href": "/x", "generation": 2, "spec": {"a": 1},
            "owner_references": {"id": "2", "kind": "Cluster", "href": "/y"}, "unknown": []
        });
        let read = Resource::read(plain.clone()).unwrap();
        assert!(!read.is_deleted());
        assert_eq!(read.owner.as_ref().unwrap().href, "/y");
        assert_eq!(read.spec(), &json!({"a": 1}));
        let mut older = plain;
        older["deleted_time"] = Value::Null;
        older["owner_references"] = Value::Null;
        let read = Resource::read(older).unwrap();
        assert!(!read.is_deleted() && read.owner.is_none());
        assert!(Resource::read(json!({"id": "1"})).is_err());
    }
}

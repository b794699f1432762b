//! Examples of bodies. Those of resources are made by the code that makes real answers, and all fit their schemas.

use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::wire::{self, Views};
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::explain::{ExplainInput, Surroundings, explain};
use hyperfleet_domain::history::Tombstone;
use hyperfleet_domain::lease::HeldLease;
use hyperfleet_domain::lifecycle::{self, Draft, Family};
use hyperfleet_domain::schema::SpecSchema;
use hyperfleet_domain::{
    Entity, EntityRegistry, Labels, Reference, Resource, ResourceId, ResourceName,
    ResourceSnapshot, Tenancy, Violations,
};

/// The time of all examples.
pub fn moment() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_261_600, 0).unwrap_or_default()
}

/// The request id of all examples.
pub const REQUEST_ID: &str = "019b7868-8e00-7000-8000-0000000000aa";
const TIME: &str = "2026-01-01T10:00:00Z";
const ACTOR: &str = "system@hyperfleet.local";

#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    registry: &'a EntityRegistry,
    entity: &'a Entity,
    spec: &'a Value,
}

/// For kinds that accept any spec.
static ANY_SPEC: LazyLock<Value> = LazyLock::new(|| json!({"region": "eu-west-1"}));

impl<'a> Examples<'a> {
    /// Examples of a kind. A kind whose specs must fit a schema has examples only if the schema has a valid one.
    pub fn new(registry: &'a EntityRegistry, entity: &'a Entity) -> Option<Self> {
        let spec = match &entity.spec_schema {
            None => &*ANY_SPEC,
            Some(schema) => fitting_example(schema)?,
        };
        Some(Self {
            registry,
            entity,
            spec,
        })
    }

    /// The example with a name; of a list of resources, in a list of `kind`. Some need `examples` of a kind.
    #[rustfmt::skip]
    pub fn named(examples: Option<Self>, name: &str, kind: Option<&str>) -> Option<Value> {
        Some(match name {
            "audit" => audit(&examples?.created()),
            "claim" => json!({"duration_seconds": 15, "holder": "dns-adapter-7c9f-1"}),
            "create" => examples?.create(),
            "created" => examples?.created(),
            "deleted" => examples?.deleted(),
            "events" => events(),
            "explained" => examples?.explained(),
            "force" => json!({"reason": "The adapter is gone and cannot finalize."}),
            "generations" => generations(&examples?.created()),
            "lease" => json!(wire::lease(&lease())),
            "listed" => page(&format!("{}List", kind.unwrap_or("Resource")), &examples?.created()),
            "merge" => json!({"labels": {"environment": "staging", "team": null}}),
            "metadata" => json!({
                "id": "hyperfleet", "href": "/api/hyperfleet", "kind": "API", "version": "0.1.0", "build_time": TIME,
            }),
            "operations" => json!([
                {"op": "test", "path": "/labels/environment", "value": "production"},
                {"op": "replace", "path": "/labels/environment", "value": "staging"},
            ]),
            "patch" => json!({"spec": examples?.spec, "labels": {"environment": "staging"}}),
            "report" => report(),
            "reported" => reported()?,
            "reports" => page("AdapterStatusList", &reported()?),
            _ => return None,
        })
    }

    /// The body of a create.
    fn create(self) -> Value {
        let mut body = json!({
            "kind": self.entity.kind,
            "name": self.name(),
            "spec": self.spec,
            "labels": {"environment": "production"},
        });
        let links = self.links().into_iter();
        let links = links.map(|(ref_type, target)| {
            let target = json!([{"kind": target.kind, "id": target.id.to_string()}]);
            (ref_type, target)
        });
        let links: Map<_, _> = links.collect();
        if !links.is_empty() {
            body["references"] = links.into();
        }
        body
    }

    /// The answer to a create.
    fn created(self) -> Value {
        self.view(&self.resource())
    }

    /// The answer to a delete.
    fn deleted(self) -> Value {
        let mut resource = self.resource();
        let family = Family {
            ancestors: Vec::new(),
            root: snapshot(&resource),
            descendants: Vec::new(),
        };
        if let Ok((state, _)) = lifecycle::delete(&family, &[], self.registry, &origin()) {
            resource.state = state;
        }
        self.view(&resource)
    }

    /// The explanation of a new resource.
    fn explained(self) -> Value {
        let resource = self.resource();
        let snapshot = snapshot(&resource);
        let explanation = explain(&ExplainInput {
            snapshot: &snapshot,
            created_at: resource.created_at,
            surroundings: &Surroundings::default(),
            registry: self.registry,
            now: moment() + TimeDelta::minutes(5),
        });
        json!(Views(self.registry).explanation(&explanation))
    }

    /// A removed resource.
    pub fn tombstone(self) -> Tombstone {
        let origin = origin();
        Tombstone {
            last: (&self.resource()).into(),
            removed_at: origin.at,
            removed_by: Some(origin.actor),
            request_id: Some(origin.request_id),
            reason: None,
        }
    }

    fn view(self, resource: &Resource) -> Value {
        json!(Views(self.registry).resource(&resource.into()))
    }

    fn resource(self) -> Resource {
        let labels = [("environment".to_owned(), "production".to_owned())];
        let owner = self.entity.parent.as_ref().map(|_| id(1));
        let references = self.links().into_iter();
        let draft = Draft {
            id: id(2),
            name: ResourceName::stored(self.name()),
            owner,
            spec: self.spec.as_object().cloned().unwrap_or_default(),
            labels: Labels::parse(labels.into()).unwrap_or_default(),
            references: references.map(|(t, target)| (t, vec![target])).collect(),
            tenancy: Tenancy::new(),
        };
        lifecycle::create(self.entity, draft, &origin()).0
    }

    /// One reference of each required type.
    fn links(self) -> Vec<(String, Reference)> {
        let required = self.entity.references.iter().filter(|rule| rule.min > 0);
        let links = required.map(|rule| {
            let target = Reference {
                kind: rule.target_kind.clone(),
                id: id(3),
            };
            (rule.ref_type.clone(), target)
        });
        links.collect()
    }

    /// A name that its kind allows.
    fn name(self) -> String {
        let kind = self.entity.kind.to_lowercase();
        let mut name = kind.replace(|c: char| !c.is_ascii_alphanumeric(), "");
        name += "-1";
        name.truncate(self.entity.name_bytes_max);
        let mut name = name.trim_end_matches('-').to_owned();
        while name.len() < self.entity.name_bytes_min {
            name.push('0');
        }
        name
    }
}

/// A resource without reports and children.
fn snapshot(resource: &Resource) -> ResourceSnapshot {
    ResourceSnapshot {
        state: resource.state.clone(),
        reports: Vec::new(),
        children: 0,
        facts: None,
    }
}

fn fitting_example(schema: &SpecSchema) -> Option<&Value> {
    let component = schema.components().get(schema.name())?;
    let first = component.get("examples").and_then(|all| all.get(0));
    let example = component.get("example").or(first)?;
    let mut violations = Violations::default();
    schema.check(example.as_object()?, &mut violations);
    violations.is_empty().then_some(example)
}

/// The body of a report.
fn report() -> Value {
    json!({
        "adapter": "validation",
        "observed_generation": 1,
        "observed_time": TIME,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "Done", "message": "all checks passed"},
            {"type": "Applied", "status": "True"},
            {"type": "Health", "status": "True"},
        ],
        "data": {"checks": 12},
        "metadata": {"attempt": 1, "job_name": "validation-1"},
    })
}

/// The answer to a report, which is read like every other one.
fn reported() -> Option<Value> {
    let report = wire::report(report().to_string().as_bytes(), moment()).ok()?;
    Some(json!(Views::report(&report)))
}

/// A held lease.
pub fn lease() -> HeldLease {
    HeldLease {
        name: "dns-adapter".to_owned(),
        holder: "dns-adapter-7c9f-1".to_owned(),
        acquired_at: moment(),
        renewed_at: moment() + TimeDelta::seconds(35),
        expires_at: moment() + TimeDelta::seconds(50),
    }
}

/// A page with one item.
fn page(kind: &str, item: &Value) -> Value {
    json!({"items": [item], "kind": kind, "page": 1, "size": 1, "total": 1})
}

/// A page of the audit trail: the creation of a resource.
fn audit(created: &Value) -> Value {
    let entry = json!({
        "action": "create", "actor": ACTOR, "generation_after": 1, "kind": created["kind"], "name": created["name"],
        "request_id": REQUEST_ID, "resource_id": created["id"], "sequence": 1, "tenancy": {}, "time": TIME,
    });
    let mut page = page("AuditList", &entry);
    page["position"] = json!("0-7432-1");
    page["sealed"] = json!("start");
    page
}

/// A page of generations: the first one of a resource.
fn generations(created: &Value) -> Value {
    let mut generation = json!({
        "action": "create", "actor": ACTOR, "generation": 1, "request_id": REQUEST_ID, "time": TIME,
    });
    for member in ["labels", "references", "spec"] {
        if let Some(value) = created.get(member) {
            generation[member] = value.clone();
        }
    }
    let mut page = page("GenerationList", &generation);
    page["complete"] = json!(true);
    page
}

/// A page of events.
fn events() -> Value {
    let event = json!({
        "actor": ACTOR, "adapter": "validation", "generation": 1, "request_id": REQUEST_ID, "time": TIME, "type": "condition",
        "condition": {
            "type": "Reconciled", "from": "False", "to": "True", "since": "2026-01-01T09:58:30Z", "duration_seconds": 90.0,
            "reason": "ReconciledAll",
        },
    });
    let mut page = page("EventList", &event);
    page["complete"] = json!(true);
    page
}

fn origin() -> ChangeOrigin {
    ChangeOrigin {
        actor: ACTOR.to_owned(),
        request_id: REQUEST_ID.to_owned(),
        at: moment(),
    }
}

/// An id of the usual form: a `UUIDv7` of the examples' time.
fn id(number: u128) -> ResourceId {
    Uuid::from_u128(0x019b_7868_8e00_7000_8000_0000_0000_0000 | number).into()
}

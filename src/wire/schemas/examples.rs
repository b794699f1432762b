//! Examples, made by the code that makes real answers.

use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::domain::audit::{Action, AuditEntry, ChangeOrigin, TrailPage, TrailPosition};
use crate::domain::explain::{ExplainInput, Surroundings, explain};
use crate::domain::history::{
    Generation, GenerationAuthor, HistoryPage, TimelineEvent, TimelineEventKind, Tombstone,
    Transition,
};
use crate::domain::lease::HeldLease;
use crate::domain::lifecycle::{self, Draft, Family};
use crate::domain::page::{Listing, PageRequest};
use crate::domain::schema::SpecSchema;
use crate::domain::tenancy::TenantScope;
use crate::domain::{
    ConditionStatus, Entity, EntityRegistry, Labels, Reference, Report, Resource, ResourceId,
    ResourceName, ResourceSnapshot, Tenancy, Violations,
};
use crate::wire::{ListKey, Params, Views};

/// The time of all examples.
pub fn moment() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_261_600, 0).unwrap_or_default()
}

/// The request id of all examples.
pub const REQUEST_ID: &str = "019b7868-8e00-7000-8000-0000000000aa";
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

    /// The body of a create.
    pub fn create(self) -> Value {
        let mut body = json!({
            "kind": self.entity.kind,
            "name": self.name(),
            "spec": self.spec,
            "labels": {"environment": "production"},
        });
        let links = self.links().into_iter().map(|(ref_type, target)| {
            (
                ref_type,
                json!([{"kind": target.kind, "id": target.id.to_string()}]),
            )
        });
        let links: Map<_, _> = links.collect();
        if !links.is_empty() {
            body["references"] = links.into();
        }
        body
    }

    /// The body of a patch.
    pub fn patch(self) -> Value {
        json!({"spec": self.spec, "labels": {"environment": "staging"}})
    }

    /// The answer to a create.
    pub fn created(self) -> Value {
        self.shown(self.resource())
    }

    /// The answer to a delete.
    pub fn deleted(self) -> Value {
        let mut resource = self.resource();
        let family = Family {
            ancestors: Vec::new(),
            root: snapshot(&resource),
            descendants: Vec::new(),
        };
        if let Ok((state, _)) = lifecycle::delete(&family, &[], self.registry, &origin()) {
            resource.state = state;
        }
        self.shown(resource)
    }

    /// The explanation of a new resource.
    pub fn explained(self) -> Value {
        let resource = self.resource();
        let snapshot = snapshot(&resource);
        let explanation = explain(&ExplainInput {
            snapshot: &snapshot,
            created_at: resource.created_at,
            surroundings: &Surroundings::default(),
            registry: self.registry,
            now: moment() + TimeDelta::minutes(5),
        });
        json(&Views(self.registry).explanation(&explanation))
    }

    /// A page of resources of the given kind, or of all kinds.
    pub fn listed(self, kind: Option<&str>) -> Value {
        // The list ends here, so any key will do.
        let key = ListKey::new("", &Params::default(), &[], &TenantScope::ALL);
        let listing = listing(self.resource().into());
        json(&Views(self.registry).resources(kind, listing, &key, None))
    }

    /// A page of generations.
    pub fn generations(self) -> Value {
        let origin = origin();
        let generation = Generation {
            state: self.resource().into(),
            author: GenerationAuthor {
                at: origin.at,
                actor: Some(origin.actor),
                request_id: Some(origin.request_id),
            },
            action: Action::Create,
            changed: None,
        };
        json(&Views(self.registry).generations(&history(generation)))
    }

    /// A removed resource.
    pub fn tombstone(self) -> Tombstone {
        let origin = origin();
        Tombstone {
            last: self.resource().into(),
            removed_at: origin.at,
            removed_by: Some(origin.actor),
            request_id: Some(origin.request_id),
            reason: None,
        }
    }

    fn shown(self, resource: Resource) -> Value {
        json(&Views(self.registry).resource(&resource.into()))
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
    let mut faults = Violations::default();
    schema.check(example.as_object()?, &mut faults);
    faults.is_empty().then_some(example)
}

/// The body of a report.
pub fn report() -> Value {
    json!({
        "adapter": "validation",
        "observed_generation": 1,
        "observed_time": crate::domain::moment::rfc3339(moment()),
        "conditions": [
            {"type": "Available", "status": "True", "reason": "Done", "message": "all checks passed"},
            {"type": "Applied", "status": "True"},
            {"type": "Health", "status": "True"},
        ],
        "data": {"checks": 12},
        "metadata": {"attempt": 1, "job_name": "validation-1"},
    })
}

/// The answer to a report.
pub fn reported() -> Value {
    stored().map_or(Value::Null, |stored| json(&Views::report(&stored)))
}

pub fn reports() -> Value {
    stored().map_or(Value::Null, |stored| {
        json(&Views::reports(&listing(stored)))
    })
}

/// The body of a merge patch.
pub fn merge_patch() -> Value {
    json!({"labels": {"environment": "staging", "team": null}})
}

/// The body of a JSON patch.
pub fn json_patch() -> Value {
    json!([
        {"op": "test", "path": "/labels/environment", "value": "production"},
        {"op": "replace", "path": "/labels/environment", "value": "staging"},
    ])
}

/// The body of a force-delete.
pub fn force_delete() -> Value {
    json!({"reason": "The adapter is gone and cannot finalize."})
}

/// The body of a request for a lease.
pub fn lease_claim() -> Value {
    json!({"duration_seconds": 15, "holder": "dns-adapter-7c9f-1"})
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

/// A page of the audit trail.
pub fn audit(kind: &str, name: &str) -> Value {
    let position = TrailPosition {
        era: 0,
        commit_order: 7_432,
        sequence: 1,
    };
    let entry = AuditEntry {
        action: Action::Create.into_str().to_owned(),
        actor: ACTOR.to_owned(),
        generation_after: Some(1),
        generation_before: None,
        kind: kind.to_owned(),
        name: name.to_owned(),
        position,
        reason: None,
        request_id: REQUEST_ID.to_owned(),
        resource_id: id(2).to_string(),
        sequence: 1,
        tenancy: Tenancy::new(),
        at: moment(),
    };
    json(&Views::audit(&TrailPage {
        listing: listing(entry),
        position,
        sealed: TrailPosition::START,
    }))
}

/// A page of events.
pub fn events() -> Value {
    let origin = origin();
    let transition = Transition {
        condition: "Reconciled".to_owned(),
        from: Some(ConditionStatus::False.into_str()),
        to: Some(ConditionStatus::True.into_str()),
        since: Some(origin.at - TimeDelta::seconds(90)),
        lasted: Some(TimeDelta::seconds(90)),
        reason: Some("ReconciledAll".to_owned()),
        message: None,
    };
    let event = TimelineEvent {
        at: origin.at,
        kind: TimelineEventKind::Condition,
        actor: Some(origin.actor),
        request_id: Some(origin.request_id),
        cause: Some("validation".to_owned()),
        reason: None,
        generation: Some(1),
        transition: Some(transition),
    };
    json(&Views::timeline(&history(event)))
}

fn history<T>(item: T) -> HistoryPage<T> {
    HistoryPage {
        listing: listing(item),
        is_complete: true,
    }
}

/// The example of a report, read as every other report.
fn stored() -> Option<Report> {
    crate::wire::report(report().to_string().as_bytes(), moment()).ok()
}

fn listing<T>(item: T) -> Listing<T> {
    Listing {
        page: PageRequest::default(),
        items: vec![item],
        total: 1,
        next: None,
    }
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

fn json(view: &impl Serialize) -> Value {
    // Views are objects: writing and reading one cannot fail.
    serde_json::to_value(view).unwrap_or_default()
}

//! 200 complete histories of a resource with known results, replayed request by request.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Map;

use super::given;
use crate::audit::ChangeOrigin;
use crate::lifecycle::{self, Draft, Family, Patch};
use crate::{
    Condition, ConditionStatus, EntityRegistry, Labels, References, Report, ReportOutcome,
    ReportState, ReportedCondition, Resource, ResourceName, ResourceSnapshot, Tenancy,
};

const PARENT: &str = "Cluster";
const CHILD: &str = "NodePool";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    name: String,
    required_adapters: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    at: DateTime<Utc>,
    expect: Expected,
    #[serde(flatten)]
    op: Op,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Op {
    Create,
    Patch,
    Report(ReportOp),
    Delete { has_children: bool },
    ChildrenGone { has_children: bool },
}

#[derive(Deserialize)]
struct ReportOp {
    adapter: String,
    observed_generation: i32,
    observed_time: DateTime<Utc>,
    conditions: Vec<ObservedOp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObservedOp {
    #[serde(rename = "type")]
    kind: String,
    status: ConditionStatus,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    outcome: String,
    detail: Option<String>,
    generation: i32,
    conditions: Vec<Condition>,
    adapter_statuses: Vec<AdapterStatus>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdapterStatus {
    adapter: String,
    observed_generation: i32,
    created_time: DateTime<Utc>,
    last_report_time: DateTime<Utc>,
    conditions: Vec<ReportedCondition>,
}

/// The one resource of a history, as a store would hold it.
struct Life {
    registry: EntityRegistry,
    /// Its current state, or the last one before its removal.
    resource: Resource,
    reports: Vec<ReportState>,
    has_children: bool,
    is_gone: bool,
}

impl Life {
    fn create(history: &History) -> Self {
        let required: Vec<_> = history.required_adapters.iter().map(|a| &**a).collect();
        let registry = given::registry(&[
            given::kind(PARENT, &required),
            // A child that no history names: it waits for its own adapter forever.
            given::child_kind(CHILD, PARENT, "cascade", &["silent"]),
        ]);
        let draft = Draft {
            id: given::id(1),
            name: ResourceName::stored("one".to_owned()),
            owner: None,
            spec: Map::new(),
            labels: Labels::default(),
            references: References::new(),
            tenancy: Tenancy::new(),
        };
        let entity = registry.get(PARENT).expect("it was registered above");
        let (resource, _) = lifecycle::create(entity, draft, &origin(history.steps[0].at));
        Self {
            registry,
            resource,
            reports: Vec::new(),
            has_children: false,
            is_gone: false,
        }
    }

    fn snapshot(&self) -> ResourceSnapshot {
        ResourceSnapshot {
            state: self.resource.state.clone(),
            reports: self.reports.clone(),
            children: usize::from(self.has_children),
            facts: None,
        }
    }

    /// Every PATCH of the histories changes the spec.
    fn patch(&mut self, at: DateTime<Utc>) -> &'static str {
        let mut spec = self.resource.spec.clone();
        spec.insert("changed".to_owned(), at.to_rfc3339().into());
        let patch = Patch {
            spec: Some(spec),
            ..Patch::default()
        };
        let (snapshot, entity) = (self.snapshot(), self.registry.get(PARENT));
        let patched =
            lifecycle::patch(&self.resource, Some(&snapshot), entity, &patch, &origin(at));
        match patched.expect("no history patches a finalizing resource") {
            Some((changed, _)) => {
                self.resource = changed;
                "updated"
            }
            None => "unchanged",
        }
    }

    fn delete(&mut self, has_children: bool, at: DateTime<Utc>) -> &'static str {
        self.has_children = has_children;
        let child = given::snapshot(&self.registry, CHILD, 2, Some(1));
        let family = Family {
            ancestors: Vec::new(),
            root: self.snapshot(),
            descendants: has_children.then_some(child).into_iter().collect(),
        };
        let (state, outcome) = lifecycle::delete(&family, &[], &self.registry, &origin(at))
            .expect("nothing holds back the only family there is");
        assert_eq!(
            outcome.saved.last(),
            Some(&state),
            "the returned state is stored"
        );
        assert_eq!(outcome.saved.len(), 1 + usize::from(has_children));
        self.resource.state = state;
        self.removed(&outcome.removed, "finalizing")
    }

    fn report(&mut self, op: &ReportOp) -> (&'static str, Option<String>) {
        let mut report = op.report();
        let mut snapshot = self.snapshot();
        let decision = lifecycle::report(&snapshot, self.registry.get(PARENT), &mut report);
        match decision.outcome {
            ReportOutcome::Rejected(invalid) => return ("invalid", Some(invalid.to_string())),
            ReportOutcome::Discarded(_) => return ("discarded", None),
            ReportOutcome::Repeated | ReportOutcome::SameTime => {}
            ReportOutcome::Accepted => {
                let report = report.state;
                match self
                    .reports
                    .iter_mut()
                    .find(|r| r.adapter == report.adapter)
                {
                    Some(stored) => *stored = report,
                    None => self.reports.push(report),
                }
                self.resource.state.conditions = decision.conditions;
            }
        }
        if !decision.completes {
            return ("accepted", None);
        }
        snapshot.reports.clone_from(&self.reports);
        let outcome = lifecycle::remove(&snapshot, &[], &self.registry);
        assert_eq!(outcome.saved, []);
        (self.removed(&outcome.removed, "accepted"), None)
    }

    /// Carries out a removal, if there is one; returns what happened.
    fn removed(&mut self, removed: &[crate::ResourceId], otherwise: &'static str) -> &'static str {
        if !removed.contains(&self.resource.state.id) {
            return otherwise;
        }
        self.is_gone = true;
        self.reports.clear();
        self.resource.state.conditions.clear();
        "hard_deleted"
    }

    fn seen(&self, (outcome, detail): (&str, Option<String>)) -> Expected {
        let statuses = self.reports.iter().map(|r| AdapterStatus {
            adapter: r.adapter.clone(),
            observed_generation: r.observed_generation,
            created_time: r.created_at,
            last_report_time: r.reported_at,
            conditions: r.conditions.clone(),
        });
        Expected {
            outcome: outcome.to_owned(),
            detail,
            generation: self.resource.state.generation,
            conditions: self.resource.state.conditions.clone(),
            adapter_statuses: statuses.collect(),
        }
    }
}

impl ReportOp {
    fn report(&self) -> Report {
        let conditions = self.conditions.iter().map(|c| ReportedCondition {
            last_transition_at: self.observed_time,
            message: c.message.clone(),
            reason: c.reason.clone(),
            status: c.status,
            kind: c.kind.clone(),
        });
        Report {
            state: ReportState {
                adapter: self.adapter.clone(),
                observed_generation: self.observed_generation,
                created_at: self.observed_time,
                reported_at: self.observed_time,
                conditions: conditions.collect(),
            },
            data: Map::new(),
            metadata: None,
        }
    }
}

fn origin(at: DateTime<Utc>) -> ChangeOrigin {
    ChangeOrigin {
        at,
        ..given::origin(0)
    }
}

#[test]
fn every_history_goes_as_it_is_known_to_go() {
    let text = include_str!("../../../../tests/vectors/hyperfleet_histories.json");
    let histories: Vec<History> = serde_json::from_str(text).expect("histories have this shape");
    let mut steps = 0;
    for history in &histories {
        let mut life = Life::create(history);
        for (index, step) in history.steps.iter().enumerate() {
            let place = format!("{} step {index}", history.name);
            assert!(!life.is_gone, "{place}: the resource is gone already");
            let outcome = match &step.op {
                Op::Create => {
                    assert_eq!(index, 0, "{place}: lives begin once");
                    ("created", None)
                }
                Op::Patch => (life.patch(step.at), None),
                Op::Report(op) => life.report(op),
                Op::Delete { has_children } => (life.delete(*has_children, step.at), None),
                // In these histories the parent is evaluated again only at its next report.
                Op::ChildrenGone { has_children } => {
                    life.has_children = *has_children;
                    ("ok", None)
                }
            };
            assert_eq!(life.seen(outcome), step.expect, "{place}");
            steps += 1;
        }
    }
    assert_eq!((histories.len(), steps), (200, 1596));
}

//! Rules that derive conditions: cases whose results the older service computed (M01-M25), rules that are refused at
//! the start, and rules that could harm the process.

mod cost;
mod documented;
mod language;
mod refused;
mod vectors;
mod writes;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::given;
use crate::aggregation::adapter_condition_type;
use crate::condition_rules::{
    Data, Derived, ExpressionConfig, Facts, OutputConfig, RuleConfig, RuleInput,
};
use crate::entity_config::{self, EntityConfig, InvalidEntities};
use crate::{Condition, ConditionStatus, EntityRegistry, ReportState, ReportedCondition, Resource};

/// Minutes after the start of all tests.
fn minute(minute: i64) -> DateTime<Utc> {
    given::at(minute * 60)
}

/// A rule for the condition `Zone`.
fn rule(when: &str, status: &str, reason: &str, message: &str) -> RuleConfig {
    let expression = |text: &str| ExpressionConfig {
        expression: text.to_owned(),
    };
    RuleConfig {
        kind: "Zone".to_owned(),
        when: expression(when),
        output: OutputConfig {
            status: expression(status),
            reason: expression(reason),
            message: expression(message),
        },
    }
}

/// A rule that always gives `Zone=True` with that message.
fn saying(message: &str) -> RuleConfig {
    rule("true", "\"True\"", "\"Ok\"", message)
}

fn kind(rules: Vec<RuleConfig>) -> EntityConfig {
    EntityConfig {
        conditions: rules,
        ..given::kind("Cluster", &["dns"])
    }
}

fn errors(rules: Vec<RuleConfig>) -> Vec<String> {
    match entity_config::registry(&[kind(rules)]) {
        Ok(_) => Vec::new(),
        Err(InvalidEntities(errors)) => errors.iter().map(|f| of_conditions(f)).collect(),
    }
}

/// An error without the setting that it begins with.
fn of_conditions(error: &str) -> String {
    let said = error.strip_prefix("entities[0].conditions: ");
    said.unwrap_or_else(|| panic!("{error}")).to_owned()
}

/// A cluster at generation 2, last changed at minute 10, on which `dns` has reported.
struct Scene {
    resource: Resource,
    reports: Vec<ReportState>,
    data: BTreeMap<String, Value>,
    previous: Vec<Condition>,
}

impl Default for Scene {
    fn default() -> Self {
        let registry = given::registry(&[given::kind("Cluster", &["dns"])]);
        let mut resource = given::resource(&registry, "Cluster", 7, None);
        resource.state.generation = 2;
        resource.state.updated_at = minute(10);
        let spec =
            json!({"region": "eu", "adminPassword": "hunter2", "nodes": [{"n": 1}, {"n": 2}]});
        resource.spec = members(&spec);
        Self {
            resource,
            reports: vec![report("dns", 2, &[("Available", ConditionStatus::True)])],
            data: BTreeMap::from([(
                "dns".to_owned(),
                json!({"zone": "z1", "authToken": "abc", "quota": {"remaining": 3}}),
            )]),
            previous: Vec::new(),
        }
    }
}

impl Scene {
    fn derive(&self, rules: Vec<RuleConfig>) -> Derived {
        self.derive_by(&given::registry(&[kind(rules)]))
    }

    fn derive_by(&self, registry: &EntityRegistry) -> Derived {
        let data = self.data.iter();
        let data = data.map(|(adapter, data)| (adapter.clone(), Data::of(members(data))));
        let facts = Facts::of(&self.resource, data.collect());
        let rules = registry.get("Cluster").and_then(|e| e.rules.as_ref());
        let rules = rules.expect("the kind has rules");
        rules.derive(&RuleInput {
            state: &self.resource.state,
            facts: &facts,
            reports: &self.reports,
            previous: &self.previous,
        })
    }

    /// The result of the one rule: its condition, or the error.
    fn one(&self, rule: RuleConfig) -> Result<Option<Condition>, String> {
        let Derived {
            mut conditions,
            failures,
        } = self.derive(vec![rule]);
        match failures.into_iter().next() {
            Some(failure) => Err(failure.error),
            None => Ok(conditions.pop()),
        }
    }

    /// The message of a rule that gives one.
    fn message(&self, expression: &str) -> String {
        let condition = self.one(saying(expression));
        let condition = condition.unwrap_or_else(|error| panic!("{expression}: {error}"));
        let message = condition.and_then(|c| c.message);
        message.unwrap_or_else(|| panic!("{expression}: no condition"))
    }
}

fn report(adapter: &str, generation: i32, statuses: &[(&str, ConditionStatus)]) -> ReportState {
    let conditions = statuses.iter().map(|&(kind, status)| ReportedCondition {
        last_transition_at: minute(9),
        message: None,
        reason: Some(format!("{kind}Reason")),
        status,
        kind: kind.to_owned(),
    });
    ReportState {
        adapter: adapter.to_owned(),
        observed_generation: generation,
        created_at: minute(9),
        reported_at: minute(11),
        conditions: conditions.collect(),
    }
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn previously(status: ConditionStatus) -> Condition {
    Condition {
        created_at: minute(5),
        last_transition_at: minute(5),
        last_updated_at: minute(5),
        message: Some("before".to_owned()),
        observed_generation: 1,
        reason: Some("Before".to_owned()),
        status,
        kind: "Zone".to_owned(),
    }
}

#[test]
fn the_type_of_an_adapter_is_reserved_whichever_kind_requires_it() {
    let other = EntityConfig {
        conditions: vec![RuleConfig {
            kind: adapter_condition_type("dns"),
            ..saying("\"\"")
        }],
        ..given::kind("Channel", &[])
    };
    let configs = [given::kind("Cluster", &["dns"]), other];
    let InvalidEntities(errors) = entity_config::registry(&configs).unwrap_err();
    assert_eq!(
        errors,
        [
            "entities[1].conditions: entity kind \"Channel\" has the condition \"DnsSuccessful\", which stands for a required adapter: choose another type"
        ]
    );
}

//! Rules see what a write of the desired state makes of the resource.

use std::collections::BTreeMap;

use serde_json::json;

use super::{kind, members, rule, saying};
use crate::condition_rules::Facts;
use crate::lifecycle::{self, Draft, Patch};
use crate::tests::given;
use crate::{Labels, References, Resource, ResourceName, ResourceSnapshot, Tenancy};

fn zone(resource: &Resource) -> Option<&str> {
    given::condition(&resource.state.conditions, "Zone")?
        .message
        .as_deref()
}

#[test]
fn a_new_and_a_changed_resource_have_the_conditions_of_their_own_spec() {
    let registry = given::registry(&[kind(vec![saying("resource.spec.region")])]);
    let entity = registry.get("Cluster");
    let draft = Draft {
        id: given::id(1),
        name: ResourceName::stored("r1".to_owned()),
        owner: None,
        spec: members(&json!({"region": "eu"})),
        labels: Labels::default(),
        references: References::new(),
        tenancy: Tenancy::new(),
    };
    let (created, failures) = lifecycle::create(entity.unwrap(), draft, &given::origin(0));
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(zone(&created), Some("eu"));

    let snapshot = ResourceSnapshot {
        facts: Some(Box::new(Facts::of(&created, BTreeMap::new()))),
        ..given::snapshot(&registry, "Cluster", 1, None)
    };
    let patch = Patch {
        spec: Some(members(&json!({"region": "us"}))),
        ..Patch::default()
    };
    let origin = given::origin(9);
    let patched = lifecycle::patch(&created, Some(&snapshot), entity, &patch, &origin);
    let (changed, failures) = patched.unwrap().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(zone(&changed), Some("us"));
}

#[test]
fn a_rule_that_no_longer_applies_takes_its_condition_away_with_the_patch() {
    let rules = vec![rule(
        "resource.spec.region == \"eu\"",
        "\"True\"",
        "\"Ok\"",
        "resource.spec.region",
    )];
    let registry = given::registry(&[kind(rules)]);
    let mut before = given::resource(&registry, "Cluster", 1, None);
    before.spec = members(&json!({"region": "us"}));
    let snapshot = ResourceSnapshot {
        facts: Some(Box::new(Facts::of(&before, BTreeMap::new()))),
        ..given::snapshot(&registry, "Cluster", 1, None)
    };
    for (region, expected) in [("eu", Some("eu")), ("us", None)] {
        let patch = Patch {
            spec: Some(members(&json!({"region": region}))),
            labels: Some(Labels::default()),
            references: Some(References::new()),
        };
        let entity = registry.get("Cluster");
        let origin = given::origin(9);
        let patched = lifecycle::patch(&before, Some(&snapshot), entity, &patch, &origin);
        before = patched.unwrap().unwrap().0;
        assert_eq!(zone(&before), expected, "{region}");
    }
}

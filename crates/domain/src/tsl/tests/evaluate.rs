//! Which resources match, without a database.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::entity_config;
use crate::tsl::parse;
use crate::{
    Condition, ConditionStatus, Deletion, EntityRegistry, Labels, References, Resource,
    ResourceName, ResourceState, Tenancy,
};

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600 + second, 0).unwrap()
}

fn kinds() -> EntityRegistry {
    entity_config::registry(&entity_config::built_in()).unwrap()
}

/// A node pool that lacks some of what can be asked for, but not a deletion.
fn node_pool() -> Resource {
    let spec = json!({
        "replicas": 3, "ratio": 2.50, "size": "4", "word": "many", "big": 9_007_199_254_740_993_u64, "none": null,
        "flag": true, "empty": "", "zones": ["eu-1", {"name": "eu-2"}], "nested": {"b": 1, "aa": null},
    });
    let Value::Object(spec) = spec else {
        unreachable!()
    };
    let labels = BTreeMap::from([
        ("shard".to_owned(), "3".to_owned()),
        ("env".to_owned(), String::new()),
    ]);
    Resource {
        state: ResourceState {
            id: Uuid::from_u128(2).into(),
            kind: "NodePool".to_owned(),
            name: ResourceName::stored("prod-1".to_owned()),
            owner: Some(Uuid::from_u128(1).into()),
            generation: 2,
            revision: 5,
            updated_at: at(60),
            deletion: Some(Deletion {
                at: at(90),
                by: "bob".to_owned(),
            }),
            conditions: vec![Condition {
                created_at: at(0),
                last_transition_at: at(30),
                last_updated_at: at(40),
                message: None,
                observed_generation: 1,
                reason: None,
                status: ConditionStatus::False,
                kind: "Reconciled".to_owned(),
            }],
        },
        spec,
        labels: Labels::parse(labels).unwrap(),
        references: References::new(),
        tenancy: Tenancy::new(),
        created_at: at(0),
        created_by: "alice".to_owned(),
        updated_by: "alice".to_owned(),
    }
}

fn matches(resource: &Resource, text: &str) -> bool {
    let filter = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    filter.matches(resource, &kinds())
}

#[test]
fn every_field_is_found() {
    for text in [
        "id = '00000000-0000-0000-0000-000000000002'",
        "kind = 'NodePool'",
        "name = 'prod-1'",
        "href = '/api/hyperfleet/v1/clusters/00000000-0000-0000-0000-000000000001/nodepools/00000000-0000-0000-0000-000000000002'",
        "generation = 2",
        "created_time = '2026-01-01'",
        "updated_time = '2026-01-01T02:01:00+02:00'",
        "deleted_time > updated_time",
        "created_by = updated_by",
        "deleted_by = 'bob'",
        "owner_id = '00000000-0000-0000-0000-000000000001'",
        "owner_kind = 'Cluster'",
        "owner_href = '/api/hyperfleet/v1/clusters/00000000-0000-0000-0000-000000000001'",
        "labels.shard = '3'",
        "labels.shard = 3",
        "labels.env = ''",
        "spec.zones.0 = 'eu-1'",
        "spec.zones.01.name = 'eu-2'",
        r#"spec.nested = '{"b": 1, "aa": null}'"#,
        "status.conditions.Reconciled = 'False'",
        "status.conditions.Reconciled.last_updated_time = '2026-01-01T00:00:40Z'",
        "status.conditions.Reconciled.last_transition_time < '2026-01-01T00:00:40Z'",
        "status.conditions.Reconciled.observed_generation < generation",
    ] {
        assert!(matches(&node_pool(), text), "{text}");
        assert!(!matches(&node_pool(), &format!("not ({text})")), "{text}");
    }
}

#[test]
fn a_missing_field_matches_neither_a_test_nor_its_negation() {
    for field in [
        "labels.nothing",
        "spec.nothing",
        "spec.none",
        "spec.nested.aa",
        "spec.word.deeper",
        "spec.zones.2",
        "spec.zones.1_0",
        "spec.zones.99999999999999999999",
        "status.conditions.Nothing",
    ] {
        for test in [
            format!("{field} = 'True'"),
            format!("{field} != 'True'"),
            format!("{field} in ('True')"),
            format!("{field} in []"),
            format!("{field} like '%'"),
            format!("{field} = created_by"),
            format!("created_by = {field}"),
        ] {
            assert!(!matches(&node_pool(), &test), "{test}");
            assert!(!matches(&node_pool(), &format!("not ({test})")), "{test}");
        }
        assert!(
            matches(&node_pool(), &format!("{field} is null")),
            "{field}"
        );
        let negated = format!("{field} is not null");
        assert!(!matches(&node_pool(), &negated), "{field}");
    }
}

#[test]
fn values_of_specs_are_numbers_only_beside_numbers() {
    for (text, expected) in [
        ("spec.replicas = 3", true),
        ("spec.replicas = '3'", true),
        ("spec.replicas = 3.0", true),
        ("spec.replicas = '3.0'", false),
        ("spec.replicas in (3, '4')", true),
        ("spec.replicas > 20", false),
        ("spec.replicas > '20'", true),
        ("spec.ratio = 25e-1", true),
        ("spec.ratio between 2 and 3", true),
        ("spec.size > 3", true),
        ("spec.size > 10", false),
        ("spec.word > 3", false),
        ("not spec.word > 3", false),
        ("spec.empty > 3 or not spec.empty > 3", false),
        ("spec.flag = true", true),
        ("spec.flag = 1 or not spec.flag = 1", false),
        ("spec.big = 9007199254740993", true),
        ("spec.big > 9007199254740992", true),
        ("spec.big < 1e300", true),
        ("labels.shard = spec.replicas", true),
    ] {
        assert_eq!(matches(&node_pool(), text), expected, "{text}");
    }
}

#[test]
fn texts_are_ordered_by_their_bytes() {
    for (text, expected) in [
        ("name > 'prod'", true),
        ("name > 'prod-'", true),
        ("name < 'prod_1'", true),
        ("name < 'Prod-1'", false),
        ("name between 'prod-1' and 'prod-1'", true),
        ("name not between 'q' and 'r'", true),
        ("name like 'prod%'", true),
        ("name like 'PROD%'", false),
        ("name ilike 'PROD-_'", true),
        ("name not like '%2'", true),
        ("'prod-0' < name", true),
    ] {
        assert_eq!(matches(&node_pool(), text), expected, "{text}");
    }
}

#[test]
fn tests_are_combined() {
    for (text, expected) in [
        ("name in []", false),
        ("name not in []", true),
        ("name = 'x' or generation = 2", true),
        ("name = 'x' and generation = 2", false),
        ("name = 'prod-1' or name = 'x' and generation = 9", true),
        ("not (name = 'x' or generation = 9)", true),
        ("not (name = 'x' and labels.nothing = 'a')", true),
        ("not (name = 'prod-1' and labels.nothing = 'a')", false),
    ] {
        assert_eq!(matches(&node_pool(), text), expected, "{text}");
    }
}

#[test]
fn only_deleted_resources_have_a_deletion_and_only_children_an_owner() {
    let mut cluster = node_pool();
    cluster.state.kind = "Cluster".to_owned();
    cluster.state.owner = None;
    cluster.state.deletion = None;
    for field in [
        "deleted_time",
        "deleted_by",
        "owner_id",
        "owner_kind",
        "owner_href",
    ] {
        assert!(matches(&cluster, &format!("{field} is null")), "{field}");
    }
    let href = "href = '/api/hyperfleet/v1/clusters/00000000-0000-0000-0000-000000000002'";
    assert!(matches(&cluster, href));
}

#[test]
fn kinds_that_are_not_configured_have_no_urls() {
    let mut unknown = node_pool();
    unknown.state.kind = "Gone".to_owned();
    for field in ["href", "owner_kind", "owner_href"] {
        assert!(matches(&unknown, &format!("{field} is null")), "{field}");
    }
    assert!(matches(&unknown, "owner_id is not null"));
    let mut orphan = node_pool();
    orphan.state.owner = None;
    assert!(matches(&orphan, "href is null and owner_href is null"));
    assert!(matches(&orphan, "owner_kind = 'Cluster'"));
}

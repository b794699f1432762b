//! The language of rules, and their input.

use serde_json::json;

use super::{Scene, minute, report};
use crate::ConditionStatus::{False, True};
use crate::{Deletion, ResourceName};

#[test]
fn numbers_compare_across_types_and_have_short_texts() {
    let mut scene = Scene::default();
    scene.resource.spec.extend(super::members(&json!({
        "count": 25, "half": 0.5, "big": 9_007_199_254_740_993_i64, "huge": u64::MAX, "minus": -3
    })));
    for (expression, message) in [
        ("resource.spec.count", "25"),
        ("resource.spec.count == 25", "True"),
        (
            "resource.spec.count >= 24.5 && 26 > resource.spec.count",
            "True",
        ),
        ("resource.spec.count + 1.0", "26"),
        ("int(resource.spec.count) + 1", "26"),
        ("resource.spec.half", "0.5"),
        ("resource.spec.minus", "-3"),
        ("resource.spec.big", "9007199254740993"),
        ("toJson(resource.spec.big)", "9007199254740993"),
        ("resource.spec.huge", "18446744073709551615"),
        ("1 == 1.0", "True"),
        ("25 / 10", "2"),
        ("[1, 2, 3][1.0]", "2"),
    ] {
        assert_eq!(scene.message(expression), message, "{expression}");
    }
}

#[test]
fn optional_values_stand_in_for_what_may_be_missing() {
    for (expression, message) in [
        ("resource.spec.?a.?b.orValue(\"none\")", "none"),
        ("resource.?spec.region.orValue(\"none\")", "eu"),
        ("resource.spec.nodes[?7].hasValue()", "False"),
        ("resource.spec.nodes[?0].n.value()", "1"),
        (
            "optional.of(\"x\").optMap(x, x + \"y\").orValue(\"z\")",
            "xy",
        ),
        ("optional.none().optMap(x, x + \"y\").orValue(\"z\")", "z"),
        (
            "optional.ofNonZeroValue(\"\").or(optional.of(\"w\")).value()",
            "w",
        ),
        ("optional.of(2).optFlatMap(x, optional.of(x)).value()", "2"),
        ("toJson([?optional.none(), 1])", "[1]"),
        ("has(resource.spec.region)", "True"),
        ("has(resource.spec.missing)", "False"),
    ] {
        assert_eq!(
            Scene::default().message(expression),
            message,
            "{expression}"
        );
    }
}

#[test]
fn functions_of_the_standard_and_our_own() {
    for (expression, message) in [
        ("size(statuses)", "1"),
        ("resource.spec.nodes.size()", "2"),
        (
            "\"abc\".contains(\"b\") && \"abc\".startsWith(\"a\") && \"abc\".endsWith(\"c\")",
            "True",
        ),
        ("resource.spec.region.matches(\"^[a-z]+$\")", "True"),
        ("matches(resource.spec.region, \"^[A-Z]\")", "False"),
        ("resource.spec.nodes.map(n, n.n).filter(n, n > 1.0)[0]", "2"),
        ("resource.spec.nodes.exists_one(n, n.n == 2)", "True"),
        ("resource.spec.nodes.all(n, n.n > 0)", "True"),
        ("\"zone\" in statuses[0].data", "True"),
        ("type(resource.generation) == double", "True"),
        (
            "timestamp(resource.updated_time) > timestamp(resource.created_time)",
            "True",
        ),
        ("duration(\"90m\").getHours()", "1"),
        ("dig(resource, \" spec . nodes.1.n \")", "2"),
        (
            "dig(resource.spec.nodes.filter(n, n.n > 1.0), \"0.n\")",
            "2",
        ),
        ("dig(resource, \"spec.nodes.01x\") == null", "True"),
        ("dig(resource.spec.region, \"x\") == null", "True"),
        ("dig(resource.spec.region, \"\")", "eu"),
        (
            "toJson({\"b\": [1, 2.5, true, null], \"a\": \"\\\"<\"})",
            "{\"a\":\"\\\"<\",\"b\":[1,2.5,true,null]}",
        ),
        ("toJson(null)", "null"),
        ("[\"list\", 1]", "[\"list\",1]"),
        // Maps are looped over in order, each time the same.
        (
            "toJson({\"b\": 1, \"a\": 2, \"c\": 3}.map(k, k))",
            "[\"a\",\"b\",\"c\"]",
        ),
    ] {
        assert_eq!(
            Scene::default().message(expression),
            message,
            "{expression}"
        );
    }
}

#[test]
fn rules_see_the_resource_without_conditions_and_secrets() {
    let mut scene = Scene::default();
    scene
        .resource
        .tenancy
        .insert("org".to_owned(), "acme".to_owned());
    scene
        .resource
        .tenancy
        .insert("authority".to_owned(), "x".to_owned());
    scene.resource.state.name = ResourceName::stored("seven".to_owned());
    let id = scene.resource.state.id.to_string();
    let seen = scene.message("toJson(resource)");
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    let expected = json!({
        "ID": id, "id": id, "kind": "Cluster", "name": "seven", "generation": 2,
        "href": format!("/api/hyperfleet/v1/clusters/{id}"),
        "CreatedTime": "2026-01-01T00:00:00Z", "created_time": "2026-01-01T00:00:00Z",
        "UpdatedTime": "2026-01-01T00:10:00Z", "updated_time": "2026-01-01T00:10:00Z",
        "created_by": "alice", "updated_by": "alice",
        "labels": {}, "metadata": {"labels": {}},
        "spec": {"region": "eu", "adminPassword": "***REDACTED***", "nodes": [{"n": 1}, {"n": 2}]},
        "tenancy": {"org": "acme", "authority": "***REDACTED***"},
    });
    assert_eq!(seen, expected);
    scene.resource.state.deletion = Some(Deletion {
        at: minute(9),
        by: "bob".to_owned(),
    });
    assert_eq!(
        scene.message("resource.deleted_by + \" \" + resource.deleted_time"),
        "bob 2026-01-01T00:09:00Z"
    );
}

#[test]
fn reports_are_seen_in_the_order_of_their_adapters() {
    let scene = Scene {
        reports: vec![
            report("z", 1, &[("Available", False)]),
            report("a", 2, &[("Available", True)]),
        ],
        ..Scene::default()
    };
    assert_eq!(
        scene.message("toJson(statuses)"),
        "[{\"adapter\":\"a\",\"conditions\":[{\"message\":\"\",\"reason\":\"AvailableReason\",\"status\":\"True\",\"type\":\"Available\"}],\"data\":{},\"observed_generation\":2},\
          {\"adapter\":\"z\",\"conditions\":[{\"message\":\"\",\"reason\":\"AvailableReason\",\"status\":\"False\",\"type\":\"Available\"}],\"data\":{},\"observed_generation\":1}]"
    );
}

#[test]
fn data_nested_too_deeply_is_empty_and_hidden() {
    let mut deep = json!({"bottom": "password"});
    for _ in 0..30 {
        deep = json!({ "d": deep });
    }
    let mut scene = Scene::default();
    scene.resource.spec.insert("deep".to_owned(), deep);
    let seen = scene.message("toJson(resource.spec.deep)");
    assert_eq!(seen.matches("{\"d\":").count(), 18);
    assert!(seen.contains("{}") && !seen.contains("password"), "{seen}");
}

#[test]
fn errors_repeat_no_values() {
    let mut scene = Scene::default();
    scene
        .resource
        .spec
        .insert("plain".to_owned(), "hunter2".into());
    for expression in [
        "resource.spec.plain + 1",
        "resource.spec.plain < 1",
        "resource.spec.plain / 2",
        "int(resource.spec.plain)",
        "timestamp(resource.spec.plain)",
        "duration(resource.spec.plain)",
        "resource.spec.plain.x",
        "resource.spec[resource.spec.plain]",
        "{}[resource.spec.plain]",
        "dig({}, \"x\")[resource.spec.plain]",
        "resource.spec.plain[0]",
        "[1][resource.spec.plain]",
        "-resource.spec.plain",
        "!resource.spec.plain",
        "resource.spec.plain ? 1 : 2",
        "resource.spec.plain.all(x, true)",
        "resource.spec.plain.value()",
        "{resource.spec.plain: 1, resource.spec.plain: 2}",
        "{null: 1}",
        "1 in resource.spec.plain",
        "optional.none().value()",
        "toJson(b\"x\")",
        "timestamp(resource.updated_time).getHours(resource.spec.plain)",
    ] {
        let error = scene.one(super::saying(expression)).unwrap_err();
        assert!(!error.contains("hunter2"), "{expression}: {error}");
        assert!(error.chars().count() <= 100, "{expression}: {error}");
    }
}

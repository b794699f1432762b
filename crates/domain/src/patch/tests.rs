use chrono::DateTime;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::entity_config::{built_in, registry};
use crate::json_limits::{DEPTH_MAX, DOCUMENT_BYTES_MAX, NESTS_MAX};
use crate::reference::RequestedReference;
use crate::{Reference, ResourceId, ResourceName, ResourceState, Tenancy};

/// A resource with a label, a reference and the given spec.
fn resource(spec: &Value) -> Resource {
    let target = Reference {
        kind: "Cluster".to_owned(),
        id: id(2),
    };
    Resource {
        state: ResourceState {
            id: id(1),
            kind: "Cluster".to_owned(),
            name: ResourceName::stored("first".to_owned()),
            owner: None,
            generation: 1,
            revision: 1,
            updated_at: DateTime::UNIX_EPOCH,
            deletion: None,
            conditions: Vec::new(),
        },
        spec: spec.as_object().unwrap().clone(),
        labels: labels(&[("team", "a")]),
        references: [("peer".to_owned(), vec![target])].into(),
        tenancy: Tenancy::new(),
        created_at: DateTime::UNIX_EPOCH,
        created_by: String::new(),
        updated_by: String::new(),
    }
}

fn id(number: u128) -> ResourceId {
    Uuid::from_u128(number).into()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs.iter();
    Labels::parse(
        pairs
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    )
    .unwrap()
}

fn apply(patch: &RequestedPatch, to: &Resource) -> Result<RequestedParts, PatchError> {
    let registry = registry(&built_in()).unwrap();
    patch.parts(to, &registry).map(Cow::into_owned)
}

fn merge(patch: &Value) -> RequestedPatch {
    RequestedPatch::Merge(MergePatch::parse(patch.as_object().unwrap().clone()).unwrap())
}

fn operations(patch: &Value) -> RequestedPatch {
    let elements = patch.as_array().unwrap().iter();
    let requested = elements.map(|operation| {
        let text = |name: &str| operation[name].as_str().map(ToOwned::to_owned);
        RequestedOperation {
            op: text("op"),
            path: text("path"),
            from: text("from"),
            value: operation.get("value").cloned(),
        }
    });
    RequestedPatch::Operations(JsonPatch::parse(requested.collect()).unwrap())
}

/// The spec that a patch makes of a spec; the spec itself if the patch changes nothing.
fn patched(patch: &RequestedPatch, spec: &Value) -> Result<Value, PatchError> {
    let parts = apply(patch, &resource(spec))?;
    Ok(parts.spec.map_or_else(|| spec.clone(), Value::Object))
}

fn conflict(patch: &Value, spec: &Value) -> String {
    match patched(&operations(patch), spec) {
        Err(PatchError::Conflict(conflict)) => conflict.to_string(),
        other => panic!("{patch}: {other:?}"),
    }
}

fn violation(patch: &RequestedPatch, to: &Resource) -> (String, Constraint, String) {
    match apply(patch, to) {
        Err(PatchError::Invalid(violations)) => {
            let first = violations.into_vec().remove(0);
            (first.field, first.constraint, first.message)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn merges_are_those_of_rfc_7396() {
    // Original, patch and result. Those of appendix A whose documents are no objects are below a member.
    for (original, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (
            json!({"d": ["a", "b"]}),
            json!({"d": ["c", "d"]}),
            json!({"d": ["c", "d"]}),
        ),
        (
            json!({"d": {"a": "b"}}),
            json!({"d": ["c"]}),
            json!({"d": ["c"]}),
        ),
        (json!({"d": {"a": "foo"}}), json!({"d": null}), json!({})),
        (
            json!({"d": {"a": "foo"}}),
            json!({"d": "bar"}),
            json!({"d": "bar"}),
        ),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!({"d": [1, 2]}),
            json!({"d": {"a": "b", "c": null}}),
            json!({"d": {"a": "b"}}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        let merged = patched(&merge(&json!({"spec": patch})), &original);
        assert_eq!(merged, Ok(result), "{original} and {patch}");
    }
}

/// Applies operations to a spec, with their paths in the spec.
fn assert_operated(spec: &Value, patch: &Value, expected: &Value) {
    let within = patch.to_string().replace("\"/", "\"/spec/");
    let within = operations(&serde_json::from_str(&within).unwrap());
    assert_eq!(patched(&within, spec).as_ref(), Ok(expected), "{patch}");
}

#[test]
fn operations_on_members_are_those_of_rfc_6902() {
    // Of appendix A, with the document in the spec.
    for (spec, patch, expected) in [
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            json!({"foo": "bar", "baz": "qux"}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            json!({"foo": "bar"}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            json!({"baz": "boo", "foo": "bar"}),
        ),
        (
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
        ),
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]),
            json!({"foo": "bar", "child": {"grandchild": {}}}),
        ),
        (
            json!({"~1": 10, "a/b": 9}),
            json!([
                {"op": "test", "path": "/~01", "value": 10},
                {"op": "test", "path": "/a~1b", "value": 9},
            ]),
            json!({"~1": 10, "a/b": 9}),
        ),
        (
            json!({"foo": {"a": 1}}),
            json!([{"op": "copy", "from": "/foo", "path": "/bar"}]),
            json!({"foo": {"a": 1}, "bar": {"a": 1}}),
        ),
    ] {
        assert_operated(&spec, &patch, &expected);
    }
}

#[test]
fn operations_on_elements_are_those_of_rfc_6902() {
    for (spec, patch, expected) in [
        (
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            json!({"foo": ["bar", "qux", "baz"]}),
        ),
        (
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            json!({"foo": ["bar", "baz"]}),
        ),
        (
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            json!({"foo": ["all", "cows", "eat", "grass"]}),
        ),
        (
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
            json!([
                {"op": "test", "path": "/baz", "value": "qux"},
                {"op": "test", "path": "/foo/1", "value": 2},
            ]),
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
        ),
        (
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
            json!({"foo": ["bar", ["abc", "def"]]}),
        ),
    ] {
        assert_operated(&spec, &patch, &expected);
    }
}

#[test]
fn operations_that_do_not_fit_are_conflicts() {
    let spec = json!({"baz": "qux", "foo": ["bar"]});
    for (operation, message) in [
        (
            json!({"op": "test", "path": "/spec/baz", "value": "bar"}),
            "operations[0] (test /spec/baz): the resource has another value",
        ),
        (
            json!({"op": "add", "path": "/spec/none/bat", "value": "qux"}),
            "operations[0] (add /spec/none/bat): the resource has no such path",
        ),
        (
            json!({"op": "replace", "path": "/spec/none", "value": 1}),
            "operations[0] (replace /spec/none): the resource has no such path",
        ),
        (
            json!({"op": "remove", "path": "/spec/foo/1"}),
            "operations[0] (remove /spec/foo/1): the resource has no such path",
        ),
        (
            json!({"op": "add", "path": "/spec/foo/01", "value": 1}),
            "operations[0] (add /spec/foo/01): the resource has no such path",
        ),
        (
            json!({"op": "copy", "from": "/spec/none", "path": "/spec/a"}),
            "operations[0] (copy /spec/none to /spec/a): the resource has no value at from",
        ),
    ] {
        assert_eq!(conflict(&json!([operation]), &spec), message);
    }
    let second = json!([
        {"op": "remove", "path": "/spec/baz"},
        {"op": "test", "path": "/spec/baz", "value": "qux"},
    ]);
    assert!(conflict(&second, &spec).starts_with("operations[1] (test /spec/baz)"));
}

#[test]
fn only_parts_that_differ_are_changed() {
    let spec = json!({"a": 1});
    let peer = json!({"id": id(2).to_string(), "kind": "Cluster"});
    for patch in [
        merge(&json!({})),
        merge(&json!({"spec": {"a": 1, "b": null}})),
        merge(&json!({"labels": {"team": "a", "none": null}})),
        merge(&json!({"references": {"peer": [peer], "none": []}})),
        operations(&json!([])),
        operations(&json!([{"op": "test", "path": "/spec/a", "value": 1}])),
        operations(&json!([
            {"op": "add", "path": "/spec/b", "value": 1},
            {"op": "remove", "path": "/spec/b"},
            {"op": "replace", "path": "/labels/team", "value": "a"},
            {"op": "add", "path": "/references/none", "value": []},
        ])),
    ] {
        let parts = apply(&patch, &resource(&spec)).unwrap();
        let unset = (parts.spec, parts.labels, parts.references);
        assert_eq!(unset, (None, None, None), "{patch:?}");
    }
}

#[test]
fn labels_and_references_are_merged_by_their_names() {
    let before = resource(&json!({}));
    let parts = apply(
        &merge(&json!({"labels": {"team": null, "stage": "b"}, "references": {"peer": null}})),
        &before,
    )
    .unwrap();
    assert_eq!(parts.labels, Some(labels(&[("stage", "b")])));
    assert_eq!(parts.references, Some(RequestedReferences::new()));
    assert_eq!(parts.spec, None);
    let parts = apply(
        &merge(&json!({"labels": null, "references": null})),
        &before,
    )
    .unwrap();
    assert_eq!(parts.labels, Some(Labels::default()));
    assert_eq!(parts.references, Some(RequestedReferences::new()));
}

#[test]
fn operations_see_labels_and_references_as_answers_show_them() {
    let before = resource(&json!({}));
    let peer = id(2).to_string();
    let href = format!("/api/hyperfleet/v1/clusters/{peer}");
    let patch = operations(&json!([
        {"op": "test", "path": "/labels", "value": {"team": "a"}},
        {"op": "test", "path": "/references/peer/0", "value": {"href": href, "id": peer, "kind": "Cluster"}},
        {"op": "move", "from": "/labels/team", "path": "/labels/example.com~1team"},
        {"op": "add", "path": "/references/peer/-", "value": {"id": "x", "kind": "NodePool"}},
    ]));
    let parts = apply(&patch, &before).unwrap();
    assert_eq!(parts.labels, Some(labels(&[("example.com/team", "a")])));
    let target = |id: &str, kind: &str| RequestedReference {
        id: id.to_owned(),
        kind: kind.to_owned(),
    };
    let targets = vec![target(&peer, "Cluster"), target("x", "NodePool")];
    assert_eq!(
        parts.references,
        Some([("peer".to_owned(), targets)].into())
    );
    // An empty member is present, so that operations can add to it.
    let mut bare = before;
    bare.references.clear();
    bare.labels = Labels::default();
    let patch = operations(&json!([
        {"op": "add", "path": "/references/peer", "value": []},
        {"op": "add", "path": "/labels/a", "value": "b"},
    ]));
    let parts = apply(&patch, &bare).unwrap();
    assert_eq!(parts.labels, Some(labels(&[("a", "b")])));
}

#[test]
fn a_result_that_is_no_resource_is_refused() {
    use Constraint::{Format, Pattern, Required};
    let before = resource(&json!({"a": 1}));
    for (patch, field, constraint) in [
        (merge(&json!({"labels": {"a": 1}})), "labels", Format),
        (
            merge(&json!({"labels": {"a": "b c"}})),
            "labels[a]",
            Pattern,
        ),
        (
            merge(&json!({"references": {"peer": {}}})),
            "references",
            Format,
        ),
        (
            merge(&json!({"references": {"peer": [1]}})),
            "references.peer[0]",
            Format,
        ),
        (
            merge(&json!({"references": {"peer": [{"id": 1}]}})),
            "references.peer[0].id",
            Format,
        ),
        (
            operations(&json!([{"op": "remove", "path": "/spec"}])),
            "spec",
            Required,
        ),
        (
            operations(&json!([{"op": "replace", "path": "/spec", "value": null}])),
            "spec",
            Format,
        ),
        (
            operations(&json!([{"op": "add", "path": "/labels/a", "value": null}])),
            "labels[a]",
            Format,
        ),
    ] {
        let found = violation(&patch, &before);
        assert_eq!((&*found.0, found.1), (field, constraint), "{patch:?}");
    }
}

#[test]
fn a_merge_patch_has_objects_only() {
    for (member, value, constraint) in [
        ("spec", json!(null), Constraint::Required),
        ("spec", json!([]), Constraint::Format),
        ("labels", json!("x"), Constraint::Format),
        ("references", json!([]), Constraint::Format),
    ] {
        let patch = [(member.to_owned(), value)].into_iter().collect();
        let violations = MergePatch::parse(patch).unwrap_err().into_vec();
        let found = (
            &*violations[0].field,
            violations[0].constraint,
            violations.len(),
        );
        assert_eq!(found, (member, constraint, 1));
    }
}

#[test]
fn a_merge_may_not_exceed_the_size_of_a_body() {
    let half = "x".repeat(DOCUMENT_BYTES_MAX / 2);
    let before = resource(&json!({"a": half}));
    let patch = merge(&json!({"spec": {"b": half}}));
    let (field, constraint, message) = violation(&patch, &before);
    assert_eq!((&*field, constraint), ("spec", Constraint::Max));
    assert!(message.contains("more than 1048576"), "{message}");
}

/// Operations that begin with a value and then copy the spec into itself.
fn doubling(first: &Value, times: usize) -> RequestedPatch {
    let mut all = vec![json!({"op": "add", "path": "/spec/v", "value": first})];
    for step in 0..times {
        all.push(json!({"op": "copy", "from": "/spec", "path": format!("/spec/c{step}")}));
    }
    operations(&Value::Array(all))
}

#[test]
fn copies_cannot_double_a_value_again_and_again() {
    for (first, expected) in [
        (
            json!("x".repeat(1000)),
            format!("copies add more than {DOCUMENT_BYTES_MAX} bytes"),
        ),
        (
            json!(vec![json!([]); 30]),
            format!("copies add more than {NESTS_MAX} arrays and objects"),
        ),
    ] {
        let (field, constraint, message) = violation(&doubling(&first, 40), &resource(&json!({})));
        assert!(field.starts_with("operations["), "{field}");
        assert_eq!((constraint, message), (Constraint::Max, expected));
    }
}

#[test]
fn operations_cannot_shift_a_large_array_again_and_again() {
    let before = resource(&json!({"a": vec![0; 500_000]}));
    let moved = |times| {
        let one = json!({"op": "move", "from": "/spec/a/0", "path": "/spec/a/1"});
        operations(&json!(vec![one; times]))
    };
    assert_eq!(apply(&moved(10), &before).unwrap().spec, None);
    let (field, constraint, message) = violation(&moved(11), &before);
    assert_eq!((&*field, constraint), ("operations[10]", Constraint::Max));
    assert_eq!(
        message,
        "the operations shift more than 10000000 array elements"
    );
}

#[test]
fn operations_cannot_nest_a_value_deeper_and_deeper() {
    let steps = (1..100).map(|depth| {
        let place = "/a".repeat(depth);
        json!({"op": "add", "path": format!("/spec{place}"), "value": {}})
    });
    let patch = operations(&steps.collect());
    let (field, constraint, message) = violation(&patch, &resource(&json!({})));
    // The document and the spec are two levels, the value is one.
    assert_eq!(field, format!("operations[{}]", DEPTH_MAX - 2));
    assert_eq!(constraint, Constraint::Max);
    assert_eq!(message, "the result is nested deeper than 64 levels");
    let deep = json!([{"op": "move", "from": "/spec/v", "path": "/spec/a/a"}]);
    let nested = (1..DEPTH_MAX - 2).fold(json!({}), |inner, _| json!({"a": inner}));
    let before = resource(&json!({"a": {}, "v": nested}));
    let (_, _, message) = violation(&operations(&deep), &before);
    assert_eq!(message, "the result is nested deeper than 64 levels");
}

#[test]
fn a_patch_tells_which_members_it_may_change() {
    let spec = json!([{"op": "add", "path": "/spec/a", "value": 1}]);
    let test = json!([{"op": "test", "path": "/references", "value": {}}]);
    let copied = json!([{"op": "copy", "from": "/references", "path": "/spec/a"}]);
    let moved = json!([{"op": "move", "from": "/references/peer", "path": "/spec/a"}]);
    let removed = json!([{"op": "remove", "path": "/references/peer"}]);
    for (patch, expected) in [
        (operations(&spec), false),
        (operations(&test), false),
        (operations(&copied), false),
        (operations(&moved), true),
        (operations(&removed), true),
        (merge(&json!({"spec": {}})), false),
        (merge(&json!({"references": {}})), true),
        (RequestedPatch::Parts(RequestedParts::default()), false),
    ] {
        assert_eq!(patch.touches_references(), expected, "{patch:?}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c]", any_json(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Of any merge patch: no member with `null`, at any level outside arrays, is in the result.
fn has_no_removed_member(result: &Value, patch: &Value) -> bool {
    let (Some(result), Some(patch)) = (result.as_object(), patch.as_object()) else {
        return result == patch;
    };
    patch.iter().all(|(name, value)| match value {
        Value::Null => !result.contains_key(name),
        value => result
            .get(name)
            .is_some_and(|merged| has_no_removed_member(merged, value)),
    })
}

proptest! {
    #[test]
    fn a_merge_twice_is_a_merge_once(spec in any_object(), patch in any_object()) {
        let change = merge(&json!({"spec": patch}));
        let once = patched(&change, &spec).unwrap();
        prop_assert!(has_no_removed_member(&once, &patch), "{once} {patch}");
        prop_assert_eq!(patched(&change, &once).unwrap(), once);
    }

    #[test]
    fn no_operations_panic(
        spec in any_object(),
        all in prop::collection::vec(
            ("add|remove|replace|move|copy|test", "(/[a-c0-1-]){0,3}", "(/[a-c0-1-]){0,3}", any_json()),
            0..8,
        ),
    ) {
        let all = all.into_iter().map(|(op, path, from, value)| {
            json!({"op": op, "path": format!("/spec{path}"), "from": format!("/spec{from}"), "value": value})
        });
        let requested = all.map(|operation| RequestedOperation {
            op: operation["op"].as_str().map(ToOwned::to_owned),
            path: operation["path"].as_str().map(ToOwned::to_owned),
            from: operation["from"].as_str().map(ToOwned::to_owned),
            value: operation.get("value").cloned(),
        });
        if let Ok(patch) = JsonPatch::parse(requested.collect()) {
            let _ = patched(&RequestedPatch::Operations(patch), &spec);
        }
    }
}

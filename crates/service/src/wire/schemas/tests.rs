//! The schemas of requests agree with the code that reads the requests.

use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use super::examples::{Examples, moment};
use super::*;
use crate::wire::{
    Kinds, ListKey, Params, PatchFormat, force_delete, lease_claim, patch, report, resource,
};
use hyperfleet_domain::ListFilterKind;
use hyperfleet_domain::entity_config::{built_in, registry};
use hyperfleet_domain::page::Order;
use hyperfleet_domain::tenancy::TenantScope;

/// The metadata of a report, whose schema is inline.
const METADATA: &str = "metadata";

/// A body that is taken, its schema, and what reads it.
struct Request {
    name: &'static str,
    schema: Value,
    body: Value,
    read: Box<dyn Fn(&Value) -> bool>,
}

/// An example that depends on no kind.
fn example(name: &str) -> Value {
    Examples::named(None, name, None).unwrap()
}

fn requests() -> Vec<Request> {
    let registry = registry(&built_in()).unwrap();
    let names = Names::new(&registry);
    let schemas = Value::Object(all(&registry, &names));
    let cluster = registry.get("Cluster").unwrap().clone();
    let examples = Examples::new(&registry, &cluster).unwrap();
    let reports = |body: &Value| report(body.to_string().as_bytes(), moment()).is_ok();
    let part = |at: &'static str| {
        move |body: &Value| {
            let mut complete = example("report");
            *complete.pointer_mut(at).unwrap() = body.clone();
            report(complete.to_string().as_bytes(), moment()).is_ok()
        }
    };
    let schema = |name: &str| match name {
        METADATA => schemas["AdapterStatusCreateRequest"]["properties"]["metadata"].clone(),
        name => schemas[name].clone(),
    };
    let request = |name: &'static str, body: Value, read: Box<dyn Fn(&Value) -> bool>| Request {
        name,
        schema: schema(name),
        body,
        read,
    };
    let (conditions, metadata) = ("/conditions/0", "/metadata");
    let of_kind = |name| Examples::named(Some(examples), name, None).unwrap();
    let (create, change) = (of_kind("create"), of_kind("patch"));
    vec![
        request(
            "ClusterCreateRequest",
            create.clone(),
            Box::new(move |b| resource(b.to_string().as_bytes(), Kinds::One(&cluster)).is_ok()),
        ),
        request(
            "ResourceCreateRequest",
            create,
            Box::new(move |b| resource(b.to_string().as_bytes(), Kinds::Any(&registry)).is_ok()),
        ),
        request(
            "ClusterPatchRequest",
            change,
            Box::new(|b| patch(PatchFormat::Parts, b.to_string().as_bytes(), None).is_ok()),
        ),
        request(
            "MergePatch",
            example("merge"),
            Box::new(|b| patch(PatchFormat::Merge, b.to_string().as_bytes(), None).is_ok()),
        ),
        request(
            "ForceDeleteRequest",
            example("force"),
            Box::new(|b| force_delete(b.to_string().as_bytes()).is_ok()),
        ),
        request(
            "LeaseRequest",
            example("claim"),
            Box::new(|b| lease_claim(b.to_string().as_bytes()).is_ok()),
        ),
        request(
            "AdapterStatusCreateRequest",
            example("report"),
            Box::new(reports),
        ),
        request(
            "ConditionRequest",
            example("report").pointer(conditions).unwrap().clone(),
            Box::new(part(conditions)),
        ),
        request(
            METADATA,
            example("report").pointer(metadata).unwrap().clone(),
            Box::new(part(metadata)),
        ),
    ]
}

/// Every member of every body.
fn members(mut check: impl FnMut(&Request, &str, &Value)) {
    for request in requests() {
        assert!(
            (request.read)(&request.body),
            "{}: {}",
            request.name,
            request.body
        );
        for (member, schema) in request.schema["properties"].as_object().unwrap() {
            check(&request, member, schema);
        }
    }
}

/// Whether a body with another value of one member is taken.
fn accepts(request: &Request, member: &str, value: Value) -> bool {
    let mut body = request.body.clone();
    body[member] = value;
    (request.read)(&body)
}

/// Members that the document requires and the service does not: it uses the time of arrival instead, and checks
/// conditions only after it knows that the report is not stale.
const REQUIRED_ONLY_BY_DOCUMENT: [&str; 2] = ["observed_time", "conditions"];

#[test]
fn members_that_must_be_there_must_be_there() {
    members(|request, member, _| {
        let required = request.schema["required"].as_array();
        let required = required.into_iter().flatten().any(|name| name == member);
        let mut body = request.body.clone();
        body.as_object_mut().unwrap().remove(member);
        let is_taken = (request.read)(&body);
        let expected = !required || REQUIRED_ONLY_BY_DOCUMENT.contains(&member);
        assert_eq!(is_taken, expected, "{} without {member}", request.name);
    });
}

/// The document does not say so. A spec is never `null`, as in the older service.
#[test]
fn null_counts_as_absent_in_every_member_but_spec() {
    members(|request, member, schema| {
        let mut without = request.body.clone();
        without.as_object_mut().unwrap().remove(member);
        let expected = member != "spec" && (request.read)(&without);
        let is_taken = accepts(request, member, Value::Null);
        assert_eq!(is_taken, expected, "{} with null as {member}", request.name);
        let types = [&schema["type"], &schema["$ref"]];
        assert!(
            types.iter().any(|one| one.is_string()),
            "{member}: {schema}"
        );
    });
}

#[test]
fn members_are_of_the_type_that_the_schema_says() {
    members(|request, member, _| {
        // No member may be a boolean, except members that nothing reads.
        assert_eq!(
            accepts(request, member, json!(true)),
            requests::IGNORED.contains(&member),
            "{} {member}",
            request.name
        );
    });
}

#[test]
fn texts_are_as_long_as_the_schema_says() {
    let mut count = 0;
    members(|request, member, schema| {
        let length = |word: &str| schema[word].as_u64().map(|n| usize::try_from(n).unwrap());
        if let Some(max) = length("maxLength") {
            let at = format!("{} {member}", request.name);
            assert!(accepts(request, member, json!("a".repeat(max))), "{at}");
            assert!(
                !accepts(request, member, json!("a".repeat(max + 1))),
                "{at}"
            );
            let min = length("minLength").unwrap_or(0);
            assert!(accepts(request, member, json!("a".repeat(min))), "{at}");
            assert!(
                min == 0 || !accepts(request, member, json!("a".repeat(min - 1))),
                "{at}"
            );
            count += 1;
        }
    });
    assert_eq!(count, 11);
}

#[test]
fn counts_and_numbers_are_within_what_the_schema_says() {
    let mut count = 0;
    members(|request, member, schema| {
        let at = format!("{} {member}", request.name);
        let one = |n: u64| (format!("k{n}"), json!("v"));
        if let Some(max) = schema["maxProperties"].as_u64().filter(|max| *max > 0) {
            assert!(
                accepts(request, member, Value::Object((0..max).map(one).collect())),
                "{at}"
            );
            assert!(
                !accepts(request, member, Value::Object((0..=max).map(one).collect())),
                "{at}"
            );
            count += 1;
        }
        let one = |n: u64| json!({"type": format!("T{n}"), "status": "True"});
        if let Some(max) = schema["maxItems"].as_u64() {
            assert!(
                accepts(request, member, (0..max).map(one).collect()),
                "{at}"
            );
            assert!(
                !accepts(request, member, (0..=max).map(one).collect()),
                "{at}"
            );
            count += 1;
        }
        if let Some(min) = schema["minimum"].as_i64() {
            assert!(accepts(request, member, json!(min)), "{at}");
            assert!(!accepts(request, member, json!(min - 1)), "{at}");
            count += 1;
        }
    });
    // Labels of three bodies, conditions, the generation, the duration of a lease.
    assert_eq!(count, 6);
}

#[test]
fn patterns_are_those_of_the_rules() {
    let validator = |request: &Request, at: &str| {
        let pattern = request.schema.pointer(at).unwrap();
        jsonschema::validator_for(&json!({"pattern": pattern})).unwrap()
    };
    for request in requests().iter().take(2) {
        let names = validator(request, "/properties/name/pattern");
        for name in [
            "abc", "a-b", "0--9", "-ab", "ab-", "aBc", "a_c", "a.c", "a c", "aéc",
        ] {
            assert_eq!(
                names.is_valid(&json!(name)),
                accepts(request, "name", json!(name)),
                "{name}"
            );
        }
        let labels = validator(request, "/properties/labels/additionalProperties/pattern");
        for value in ["", "a", "1.2_3-X", "-", "a_", "a/b", "a b", "é"] {
            let is_taken = accepts(request, "labels", json!({"k": value}));
            assert_eq!(labels.is_valid(&json!(value)), is_taken, "{value}");
        }
    }
}

#[test]
fn values_are_those_that_the_schema_names() {
    for request in requests() {
        if let Some(pattern) = request.schema.pointer("/properties/kind/pattern") {
            let pattern = jsonschema::validator_for(&json!({"pattern": pattern})).unwrap();
            for kind in ["Cluster", "cluster", "Clusters", "ACluster", ""] {
                let is_taken = accepts(&request, "kind", json!(kind));
                let kind = json!(kind);
                assert_eq!(
                    pattern.is_valid(&kind),
                    is_taken,
                    "{}: {kind}",
                    request.name
                );
            }
        }
        if request.name == "ConditionRequest" {
            for status in ["True", "False", "Unknown"] {
                assert!(accepts(&request, "status", json!(status)));
            }
            assert!(!accepts(&request, "status", json!("true")));
        }
    }
}

#[test]
fn unknown_members_are_refused_where_the_schema_says_so() {
    for request in requests() {
        let expected = request.schema["additionalProperties"] != json!(false);
        let is_taken = accepts(&request, "unknown", json!(1));
        assert_eq!(is_taken, expected, "{}", request.name);
    }
}

#[test]
fn a_patch_has_a_member_at_least() {
    let requests = requests();
    let request = requests
        .iter()
        .find(|r| r.name == "ClusterPatchRequest")
        .unwrap();
    assert_eq!(request.schema["minProperties"], 1);
    assert!(!(request.read)(&json!({})));
}

#[test]
fn operations_are_those_that_the_schema_describes() {
    let schemas = fixed::fixed();
    let is_read = |operation: &Value| {
        let body = json!([operation]).to_string();
        patch(PatchFormat::Operations, body.as_bytes(), None).is_ok()
    };
    let schema = &schemas["JsonPatchOperation"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let operation = json!({"op": "test", "path": "/spec/a", "from": "/spec/b", "value": 1});
    for op in [
        "add", "remove", "replace", "move", "copy", "test", "merge", "Add", "",
    ] {
        let mut changed = operation.clone();
        changed["op"] = json!(op);
        assert_eq!(is_read(&changed), validator.is_valid(&changed), "{changed}");
    }
    for path in [
        "/spec",
        "/labels/",
        "/references/a/0",
        "",
        "spec",
        "/",
        "/name",
        "/specs",
        "/status/a",
    ] {
        let mut changed = operation.clone();
        changed["path"] = json!(path);
        assert_eq!(is_read(&changed), validator.is_valid(&changed), "{changed}");
    }
    for value in [json!(null), json!(true), json!([1]), json!({"a": "b"})] {
        let mut changed = operation.clone();
        changed["value"] = value;
        assert!(
            is_read(&changed) && validator.is_valid(&changed),
            "{changed}"
        );
    }
    for member in schema["required"].as_array().unwrap() {
        let mut changed = operation.clone();
        changed
            .as_object_mut()
            .unwrap()
            .remove(member.as_str().unwrap());
        assert!(!is_read(&changed), "{changed}");
    }
    let max = usize::try_from(schemas["JsonPatch"]["maxItems"].as_u64().unwrap()).unwrap();
    let many = |count| json!(vec![&operation; count]).to_string();
    assert!(patch(PatchFormat::Operations, many(max).as_bytes(), None).is_ok());
    assert!(patch(PatchFormat::Operations, many(max + 1).as_bytes(), None).is_err());
}

#[test]
fn pages_are_within_what_the_parameters_say() {
    for parameter in parameters::page() {
        let name = parameter["name"].as_str().unwrap().to_owned();
        let schema = &parameter["schema"];
        let page = |number: i64| Params::new(vec![(name.clone(), number.to_string())]).page();
        let min = schema["minimum"].as_i64().unwrap();
        assert!(page(min).is_ok() && page(min - 1).is_err(), "{name}");
        match schema["maximum"].as_i64() {
            Some(max) => assert!(page(max).is_ok() && page(max + 1).is_err(), "{name}"),
            None => assert!(page(i64::from(i32::MAX)).is_ok(), "{name}"),
        }
        // Generated clients send defaults: that must change nothing.
        if let Some(default) = schema["default"].as_i64() {
            assert_eq!(page(default), Params::default().page(), "{name}");
        }
        // `page` would go against `continue`, `pageSize` undo `size`.
        assert_eq!(schema["default"].is_null(), name != "size");
    }
}

#[test]
fn every_parameter_of_lists_is_read() {
    let read = |params: &Params| {
        let key = ListKey::new("", params, &[], &TenantScope::ALL);
        let order = params.order();
        let continued = params.continuation(&key, &Order::newest_first());
        let filters = ListFilterKind::iter().map(|kind| params.filter(kind));
        let filters: Vec<_> = filters.collect();
        let (page, fields) = (params.page_with_reference(), params.fields());
        let watch = params.watch(None);
        format!("{page:?} {filters:?} {order:?} {continued:?} {fields:?} {watch:?}")
    };
    let lists = parameters::shared().into_iter();
    let lists = lists.filter(|parameter| parameter["name"] != "dryRun");
    for parameter in lists.chain(parameters::kind(&[])) {
        let name = parameter["name"].as_str().unwrap().to_owned();
        let watch = ("watch".to_owned(), "true".to_owned());
        let params = Params::new(vec![(name.clone(), "x".to_owned()), watch.clone()]);
        assert_ne!(read(&params), read(&Params::new(vec![watch])), "{name}");
    }
}

#[test]
fn every_filter_of_the_audit_trail_is_read() {
    let known = ["page", "size", "pageSize"];
    let filters = parameters::audit().into_iter();
    for parameter in filters {
        let name = parameter["name"].as_str().unwrap();
        if known.contains(&name) {
            continue;
        }
        // All but the texts refuse one that is none of theirs.
        let is_free = ["kind", "actor"].contains(&name);
        let filter =
            |text: &str| Params::new(vec![(name.to_owned(), text.to_owned())]).audit_filter();
        assert_eq!(filter("\u{e9}").is_ok(), is_free, "{name}");
        if let Some(example) = parameter["example"].as_str() {
            let none = Params::default().audit_filter();
            assert!(filter(example).is_ok() && filter(example) != none, "{name}");
        }
    }
}

//! Conditions that configured rules derive, as clients see them; and that a rule which fails holds
//! nothing up.

use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, root, ruled};

const ZONE: (&str, &str, &str, &str) = (
    "Zone",
    "statuses.exists(s, s.adapter == \"dns\" && has(s.data.zone))",
    "statuses.exists(s, s.data.?zone.orValue(\"\") == resource.spec.?zone.orValue(\"z1\"))",
    "statuses.filter(s, s.adapter == \"dns\")[0].data.zone + \" \" + toJson(resource.labels)",
);

/// A rule that fails as long as the spec has no member `works`.
const FRAIL: (&str, &str, &str, &str) = ("Frail", "true", "resource.spec.works", "\"m\"");

/// Clusters that `dns` works on, with rules; they own pools.
fn kinds(rules: &[(&str, &str, &str, &str)]) -> Vec<EntityConfig> {
    vec![
        ruled(rules, root("Cluster", "clusters", &["dns"])),
        child(
            "Cluster",
            "cascade",
            ruled(rules, root("Pool", "pools", &["dns"])),
        ),
    ]
}

async fn reported(
    api: &TestApi,
    path: &str,
    adapter: &str,
    generation: i32,
    data: Value,
) -> Answer {
    api.clock.advance(1);
    let conditions = ["Available", "Applied", "Health"];
    let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
    let body = json!({
        "adapter": adapter, "observed_generation": generation, "observed_time": api.clock.now(),
        "conditions": conditions, "data": data,
    });
    let answer = api.put(&format!("{path}/statuses"), body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer
}

/// The types of a resource's conditions, in their order.
fn types(answer: &Answer) -> Vec<&str> {
    let conditions = answer.body["status"]["conditions"].as_array().unwrap();
    let types = conditions.iter().map(|c| c["type"].as_str().unwrap());
    types.collect()
}

/// Status and message of a condition.
fn says(answer: &Answer, kind: &str) -> (String, String) {
    let condition = answer.condition(kind);
    let text = |member: &str| condition[member].as_str().unwrap().to_owned();
    (text("status"), text("message"))
}

fn pair(status: &str, message: &str) -> (String, String) {
    (status.to_owned(), message.to_owned())
}

#[tokio::test]
async fn reports_patches_and_deletes_move_derived_conditions() {
    let always = (
        "Always",
        "true",
        "\"False\"",
        "\"at \" + string(resource.generation)",
    );
    let api = TestApi::spawn_with(&kinds(&[ZONE, always])).await;
    let created_at = json!("2026-01-01T10:00:00Z");
    let made = api.made("/clusters", "Cluster", "abc").await;
    let path = format!("/clusters/{}", made.id());
    let order = ["Reconciled", "LastKnownReconciled", "Always"];
    assert_eq!(types(&made), order);
    assert_eq!(says(&made, "Always"), pair("False", "at 1"));
    assert_eq!(made.condition("Always")["reason"], "Derived");
    assert_eq!(api.get(&path).await.body, made.body);

    reported(
        &api,
        &path,
        "dns",
        1,
        json!({"zone": "z1", "token": "hush"}),
    )
    .await;
    let seen = api.get(&path).await;
    let order = [
        "Reconciled",
        "LastKnownReconciled",
        "DnsSuccessful",
        "Always",
        "Zone",
    ];
    assert_eq!(types(&seen), order);
    assert_eq!(says(&seen, "Zone"), pair("True", "z1 {}"));
    // Dated by what is wanted, not by the report.
    for time in ["created_time", "last_updated_time", "last_transition_time"] {
        assert_eq!(seen.condition("Zone")[time], created_at, "{time}");
    }

    api.clock.advance(60);
    let change = json!({"spec": {"zone": "z2"}, "labels": {"a": "b"}});
    let patched = api.patch(&path, change).await;
    assert_eq!(says(&patched, "Zone"), pair("False", "z1 {\"a\":\"b\"}"));
    assert_eq!(says(&patched, "Always"), pair("False", "at 2"));
    let zone = patched.condition("Zone");
    assert_eq!(zone["observed_generation"], 2);
    assert_eq!(zone["created_time"], created_at);
    assert_eq!(zone["last_transition_time"], patched.body["updated_time"]);
    assert_eq!(
        patched.condition("Always")["last_transition_time"],
        created_at
    );
    assert_eq!(api.get(&path).await.body, patched.body);

    // The data of a report is all that changes.
    reported(&api, &path, "dns", 2, json!({"zone": "z2"})).await;
    assert_eq!(
        says(&api.get(&path).await, "Zone"),
        pair("True", "z2 {\"a\":\"b\"}")
    );
    reported(&api, &path, "dns", 2, json!({})).await;
    assert_eq!(types(&api.get(&path).await).last(), Some(&"Always"));

    let deleted = api.deleted(&path).await;
    assert_eq!(says(&deleted, "Always"), pair("False", "at 3"));
    assert_eq!(api.get(&path).await.body, deleted.body);
    api.finalize(&path, &["dns"], 3).await;
    assert!(!api.has(&path).await);
}

#[tokio::test]
async fn resources_are_found_by_derived_conditions() {
    let api = TestApi::spawn_with(&kinds(&[ZONE])).await;
    let here = api.cluster("here").await;
    let there = api.cluster("there").await;
    api.cluster("nowhere").await;
    reported(&api, &here, "dns", 1, json!({"zone": "z1"})).await;
    reported(&api, &there, "dns", 1, json!({"zone": "z9"})).await;
    for (search, names) in [
        ("status.conditions.Zone='True'", vec!["here"]),
        ("status.conditions.Zone='False'", vec!["there"]),
        (
            "status.conditions.Zone.observed_generation=1 and name like 'h%25'",
            vec!["here"],
        ),
    ] {
        let path = format!("/clusters?search={}", search.replace(' ', "%20"));
        let found = api.get(&path).await;
        assert_eq!(found.status, 200, "{}", found.body);
        assert_eq!(found.column("name"), names, "{search}");
    }
}

#[tokio::test]
async fn a_failed_rule_keeps_its_condition_and_delays_nothing() {
    let api = TestApi::spawn_with(&kinds(&[FRAIL, ZONE])).await;
    let path = api.cluster("abc").await;
    let order = ["Reconciled", "LastKnownReconciled"];
    assert_eq!(types(&api.get(&path).await), order, "never computed: none");
    let pool = api.make(&format!("{path}/pools"), "Pool", "pool").await;

    reported(&api, &path, "dns", 1, json!({"zone": "z1"})).await;
    assert_eq!(says(&api.get(&path).await, "Zone"), pair("True", "z1 {}"));
    let patched = api.patch(&path, json!({"spec": {"works": true}})).await;
    assert_eq!(says(&patched, "Frail"), pair("True", "m"));
    let before = patched.condition("Frail").clone();
    for (generation, works) in [(3, json!("maybe")), (4, json!(null))] {
        let patched = api.patch(&path, json!({"spec": {"works": works}})).await;
        assert_eq!(patched.status, 200, "{}", patched.body);
        assert_eq!(patched.body["generation"], generation);
        assert_eq!(patched.condition("Frail"), &before);
        assert_eq!(patched.condition("Zone")["observed_generation"], generation);
        reported(&api, &path, "dns", generation, json!({"zone": "z1"})).await;
        let seen = api.get(&path).await;
        assert_eq!(seen.condition("Frail"), &before);
        assert_eq!(seen.condition("Reconciled")["status"], "True");
    }
    // The last report of a child removes its owner, where the rule fails as well.
    let deleted = api.deleted(&path).await;
    assert_eq!(deleted.condition("Frail"), &before);
    assert_eq!(deleted.condition("Zone")["observed_generation"], 5);
    api.finalize(&pool, &["dns"], 2).await;
    assert!(!api.has(&pool).await);
    assert_eq!(api.get(&path).await.condition("Frail"), &before);
    api.finalize(&path, &["dns"], 5).await;
    assert!(!api.has(&path).await);

    let other = api.cluster("other").await;
    api.make(&format!("{other}/pools"), "Pool", "pool").await;
    api.deleted(&other).await;
    let forced = api
        .post(&format!("{other}/force-delete"), json!({"reason": "x"}))
        .await;
    assert_eq!(forced.status, 204);
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn force_deleting_a_child_keeps_derived_conditions() {
    let api = TestApi::spawn_with(&kinds(&[ZONE])).await;
    let path = api.cluster("abc").await;
    let pool = api.make(&format!("{path}/pools"), "Pool", "pool").await;
    reported(&api, &path, "dns", 1, json!({"zone": "z1"})).await;
    api.deleted(&path).await;
    let zone = says(&api.get(&path).await, "Zone");
    assert_eq!(zone, pair("True", "z1 {}"));
    let forced = api
        .post(&format!("{pool}/force-delete"), json!({"reason": "x"}))
        .await;
    assert_eq!(forced.status, 204);
    assert_eq!(says(&api.get(&path).await, "Zone"), zone);
}

#[tokio::test]
async fn rules_of_a_child_see_whose_it_is() {
    let owner = (
        "Owned",
        "true",
        "resource.owner_href + \"/pools/\" + resource.id == resource.href",
        "toJson([resource.href, resource.owner_kind, resource.owner_id])",
    );
    let kinds = [
        root("Cluster", "clusters", &[]),
        child(
            "Cluster",
            "cascade",
            ruled(&[owner], root("Pool", "pools", &["dns"])),
        ),
    ];
    let api = TestApi::spawn_with(&kinds).await;
    let cluster = api.made("/clusters", "Cluster", "abc").await;
    let list = format!("/clusters/{}/pools", cluster.id());
    let pool = api.made(&list, "Pool", "pool").await;
    let expected = json!([pool.body["href"], "Cluster", cluster.id()]);
    assert_eq!(says(&pool, "Owned"), pair("True", &expected.to_string()));
    // By whatever path the report comes.
    let path = format!("/resources/{}", pool.id());
    reported(&api, &path, "dns", 1, json!({})).await;
    assert_eq!(
        says(&api.get(&path).await, "Owned"),
        pair("True", &expected.to_string())
    );
}

#[tokio::test]
async fn reports_that_come_at_once_are_all_seen() {
    let count = ("Count", "true", "true", "string(size(statuses))");
    let api = TestApi::spawn_with(&kinds(&[count])).await;
    let path = api.cluster("abc").await;
    let adapters: Vec<_> = (0..12).map(|n| format!("adapter-{n}")).collect();
    let reports = adapters
        .iter()
        .map(|adapter| api.report(&path, adapter, 1, &[]));
    for answer in futures_util::future::join_all(reports).await {
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    assert_eq!(says(&api.get(&path).await, "Count"), pair("True", "12"));
}

#[tokio::test]
async fn an_unknown_first_report_runs_rules_that_ignore_it() {
    let count = ("Count", "true", "true", "string(size(statuses))");
    let frail = ("Frail", "resource.spec.?on.hasValue()", "true", "\"m\"");
    let api = TestApi::spawn_with(&kinds(&[count, frail])).await;
    let path = api.cluster("abc").await;
    let uncertain = [("Available", "Unknown")];
    assert_eq!(api.report(&path, "dns", 1, &uncertain).await.status, 201);
    let seen = api.get(&path).await;
    assert_eq!(types(&seen), ["Reconciled", "LastKnownReconciled", "Count"]);
    assert_eq!(says(&seen, "Count"), pair("True", "0"));
}

#[tokio::test]
async fn kinds_without_adapters_derive_nothing_before_a_report() {
    let generation = ("At", "true", "true", "string(resource.generation)");
    let kinds = [
        ruled(&[generation], root("Channel", "channels", &[])),
        child("Channel", "cascade", root("Version", "versions", &["dns"])),
    ];
    let api = TestApi::spawn_with(&kinds).await;
    let path = api.make("/channels", "Channel", "abc").await;
    assert_eq!(types(&api.get(&path).await), [""; 0]);
    let patched = api.patch(&path, json!({"spec": {"a": 1}})).await;
    assert_eq!(types(&patched), [""; 0]);
    reported(&api, &path, "volunteer", 2, json!({})).await;
    assert_eq!(says(&api.get(&path).await, "At"), pair("True", "2"));
    let patched = api.patch(&path, json!({"spec": {"a": 2}})).await;
    assert_eq!(says(&patched, "At"), pair("True", "3"));
    // It waits for its children without conditions.
    let version = api.make(&format!("{path}/versions"), "Version", "v").await;
    let deleted = api.deleted(&path).await;
    assert_eq!(types(&deleted), [""; 0]);
    api.finalize(&version, &["dns"], 2).await;
    assert!(!api.has(&path).await);
}

#[tokio::test]
async fn conditions_of_removed_rules_go_with_the_next_change() {
    let api = TestApi::spawn_with(&kinds(&[ZONE, FRAIL])).await;
    let path = api.cluster("abc").await;
    reported(&api, &path, "dns", 1, json!({"zone": "z1"})).await;
    let registry = hyperfleet_domain::entity_config::registry(&kinds(&[FRAIL])).unwrap();
    let store = api.database.store();
    let api = TestApi::spawn_on(registry, api.database, store, false);
    api.clock.advance(60);
    assert_eq!(types(&api.get(&path).await).last(), Some(&"Zone"));
    reported(&api, &path, "dns", 1, json!({"zone": "z1"})).await;
    assert_eq!(types(&api.get(&path).await).last(), Some(&"DnsSuccessful"));
}

#[tokio::test]
async fn data_too_large_for_rules_is_still_stored() {
    let api = TestApi::spawn_with(&kinds(&[ZONE])).await;
    let path = api.cluster("abc").await;
    reported(&api, &path, "dns", 1, json!({"zone": "z1"})).await;
    let before = api.get(&path).await.condition("Zone").clone();
    // Once by what comes in, once by what is read; the second packs to almost nothing.
    for (adapter, text) in [("big", "x".repeat(70_000)), ("dns", String::new())] {
        let data = json!({"zone": "z7", "text": text});
        let stored = reported(&api, &path, adapter, 1, data.clone()).await;
        assert_eq!(stored.body["data"], data);
        assert_eq!(api.get(&path).await.condition("Zone"), &before, "{adapter}");
    }
    reported(&api, &path, "big", 1, json!({})).await;
    let seen = api.get(&path).await;
    assert_eq!(says(&seen, "Zone"), pair("False", "z7 {}"));
}

#[tokio::test]
async fn the_worst_rules_that_pass_do_not_keep_a_report_waiting() {
    let n = "resource.spec.n";
    let nested = format!("{n}.all(x, {n}.all(y, {n}.all(z, true)))");
    let doubled = format!("{n}.map(x, string(x) + string(x)).map(x, x + x).map(x, x + x).size()");
    let sum = vec![n; 40].join(" + ");
    let rules: Vec<_> = [&nested, &doubled, &sum, &nested]
        .into_iter()
        .zip(["A", "B", "C", "D"])
        .map(|(expression, kind)| (kind, "true", "true", expression.as_str()))
        .collect();
    let api = TestApi::spawn_with(&kinds(&rules)).await;
    let numbers: Vec<_> = (0..15_000).collect();
    let body = json!({"kind": "Cluster", "name": "abc", "spec": {"n": numbers}});
    let made = api.post("/clusters", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("/clusters/{}", made.id());
    let since = std::time::Instant::now();
    reported(&api, &path, "dns", 1, json!({})).await;
    // On two idle cores it takes half a second in a debug build.
    assert!(since.elapsed().as_secs() < 15, "{:?}", since.elapsed());
    assert_eq!(types(&api.get(&path).await).last(), Some(&"DnsSuccessful"));
}

/// The database writes data with blanks: more bytes than rules count.
#[tokio::test]
async fn many_small_members_count_alike_in_patches_and_reports() {
    let seventh = ("Seventh", "true", "\"True\"", "string(statuses[0].data.k7)");
    let api = TestApi::spawn_with(&kinds(&[seventh])).await;
    let path = api.cluster("abc").await;
    let data: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("k{n}"), json!(n))).collect();
    let compact = serde_json::to_string(&data).unwrap();
    assert!(
        (56_000..65_536).contains(&compact.len()),
        "{}",
        compact.len()
    );
    reported(&api, &path, "dns", 1, data.into()).await;
    let seen = api.get(&path).await;
    assert_eq!(says(&seen, "Seventh"), pair("True", "7"));
    let changed = api.patch(&path, json!({"labels": {"a": "b"}})).await;
    assert_eq!(changed.condition("Seventh")["observed_generation"], 2);
}

//! Resources that differ in everything that can be asked for, and searches about them.

use serde_json::{Value, json};

use crate::support::{Random, TestApi};

/// Clusters with node pools, some reported on, some finalizing, each a second younger than the one
/// before.
pub(crate) async fn populated() -> TestApi {
    let api = TestApi::spawn().await;
    populate(&api, &mut Random::seeded(7)).await;
    api
}

/// The same by the caller of `api`.
pub(super) async fn populate(api: &TestApi, random: &mut Random) {
    for number in 0..24 {
        let body = json!({
            "kind": "Cluster",
            "name": format!("c{number}-{}", random.pick(&["blue", "green", "red"])),
            "spec": spec(random),
            "labels": labels(random),
        });
        let made = api.post("/clusters", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let cluster = format!("/clusters/{}", made.id());
        for pool in 0..random.below(3) {
            api.nodepool(&cluster, &format!("pool-{pool}")).await;
        }
        report(api, random, &cluster).await;
        if random.below(3) == 0 {
            let changed = api
                .patch(&cluster, json!({"spec": {"changed": number}}))
                .await;
            assert_eq!(changed.status, 200, "{}", changed.body);
        }
        if random.below(5) == 0 {
            api.deleted(&cluster).await;
        }
        api.clock.advance(1);
    }
}

async fn report(api: &TestApi, random: &mut Random, cluster: &str) {
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        if random.below(4) > 0 {
            let status = random.pick(&["True", "True", "False"]);
            let answer = api
                .report(cluster, adapter, 1, &[("Available", status)])
                .await;
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
    }
}

fn labels(random: &mut Random) -> Value {
    let mut labels = json!({});
    for (key, values) in [
        ("shard", &["1", "2", "3"]),
        ("env", &["prod", "stage", ""]),
        ("my-key", &["a", "b", "A"]),
        ("x.io/in", &["a.b", "a_b", "10"]),
    ] {
        if random.below(4) > 0 {
            labels[key] = json!(random.pick(values));
        }
    }
    labels
}

fn spec(random: &mut Random) -> Value {
    let mut spec = json!({});
    let replicas = [
        json!(1),
        json!(3),
        json!(2.5),
        json!("3"),
        json!("many"),
        json!(true),
        Value::Null,
    ];
    if random.below(5) > 0 {
        spec["replicas"] = replicas[random.below(replicas.len())].clone();
    }
    if random.below(3) > 0 {
        spec["nested"] = json!({"region": random.pick(&["eu", "us", "Eu%"]), "list": ["eu", 3]});
    }
    spec
}

/// A search that makes sense, at most so many levels deep.
pub(super) fn sensible(random: &mut Random, depth: usize) -> String {
    let inner = |random: &mut Random| sensible(random, depth - 1);
    match if depth == 0 { 9 } else { random.below(10) } {
        0 | 1 => format!("({}) and ({})", inner(random), inner(random)),
        2 | 3 => format!("({}) or ({})", inner(random), inner(random)),
        4 | 5 => format!("not ({})", inner(random)),
        _ => test(random),
    }
}

fn test(random: &mut Random) -> String {
    let texts = [
        ("name", "'c1-blue' 'c2-green' 'c3' 'C1-BLUE'"),
        ("kind", "'Cluster' 'NodePool'"),
        ("created_by", "'system@hyperfleet.local' 'nobody'"),
        ("updated_by", "'system@hyperfleet.local'"),
        ("deleted_by", "'system@hyperfleet.local' 'nobody'"),
        ("owner_kind", "'Cluster' 'NodePool'"),
        ("id", "'x' '019b7654-0000-7000-8000-000000000000'"),
        ("owner_id", "'x' '019b7654-0000-7000-8000-000000000000'"),
        ("href", "'/api/hyperfleet/v1/clusters/x'"),
        ("labels.shard", "'1' 2 '3' '4'"),
        ("labels.env", "'prod' '' 'stage'"),
        ("labels.my-key", "'a' 'A'"),
        ("labels.x.io/in", "'a.b' 10 'a_b'"),
        ("labels.nobody", "'a'"),
        ("spec.nested.region", "'eu' 'us' 'Eu%'"),
        ("spec.nested.list.0", "'eu' 'x'"),
        ("spec.replicas", "'3' 'many' true 'x'"),
        ("spec.nobody", "'a'"),
    ];
    let numbers = [
        ("generation", "1 2 3 3e9"),
        ("spec.replicas", "1 3 2.5 -1 3.0"),
        ("spec.nested.list.1", "3 4"),
        ("spec.changed", "1 7 20"),
        ("status.conditions.Reconciled.observed_generation", "1 2"),
        ("status.conditions.DnsSuccessful.observed_generation", "1 2"),
    ];
    let times = [
        ("created_time", TIMES),
        ("updated_time", TIMES),
        ("deleted_time", TIMES),
        ("status.conditions.Reconciled.last_updated_time", TIMES),
        (
            "status.conditions.DnsSuccessful.last_transition_time",
            TIMES,
        ),
    ];
    match random.below(8) {
        0..3 => any_test(random, &texts, true),
        3 => any_test(random, &numbers, false),
        4 => any_test(random, &times, false),
        5 | 6 => status_test(random),
        _ => random
            .pick(&[
                "created_time < updated_time",
                "created_by = updated_by",
                "status.conditions.Reconciled.observed_generation < generation",
                "status.conditions.DnsSuccessful.observed_generation = generation",
                "labels.shard = spec.replicas",
                "owner_kind != kind",
                "deleted_time > created_time",
            ])
            .to_owned(),
    }
}

const TIMES: &str = "'2026-01-01T10:00:03Z' '2026-01-01T10:00:10Z' '2026-01-01T12:00:17.5+02:00'";

fn any_test(random: &mut Random, fields: &[(&str, &str)], are_texts: bool) -> String {
    let (field, values) = random.pick(fields);
    let values: Vec<_> = values.split(' ').collect();
    let value = random.pick(&values);
    let other = random.pick(&values);
    let sign = random.pick(&["=", "!=", "<", "<=", ">", ">="]);
    let not = random.pick(&["", "not "]);
    match random.below(if are_texts { 6 } else { 5 }) {
        0 => format!("{field} {sign} {value}"),
        1 => format!("{value} {sign} {field}"),
        2 => format!(
            "{field} {not}in {}",
            random.pick(&[&*format!("({value}, {other})"), &format!("[{value}]"), "[]"])
        ),
        3 => format!("{field} {not}between {value} and {other}"),
        4 => format!("{field} is {not}null"),
        _ => format!(
            "{field} {not}{} {}",
            random.pick(&["like", "ilike"]),
            random.pick(&[
                "'%'",
                "'c1%'",
                "'%BLUE'",
                "'a_b'",
                "'a\\\\_b'",
                "''",
                "'_'",
                "'%u%'",
                "'Eu\\\\%'"
            ])
        ),
    }
}

fn status_test(random: &mut Random) -> String {
    let kind = random.pick(&[
        "Reconciled",
        "LastKnownReconciled",
        "DnsSuccessful",
        "Nobody",
    ]);
    let status = random.pick(&["True", "False", "Unknown"]);
    let test = match random.below(6) {
        0 => format!("= '{status}'"),
        1 => format!("!= '{status}'"),
        2 => format!("in ('{status}', 'True')"),
        3 => "is null".to_owned(),
        4 => "not in ['False']".to_owned(),
        _ => "like 'T%'".to_owned(),
    };
    format!("status.conditions.{kind} {test}")
}

//! Resources with awkward content of every sort.

use chrono::{DateTime, TimeDelta, Utc};
use hyperfleet_domain::{
    Condition, ConditionStatus, Deletion, Labels, References, Resource, ResourceId, ResourceName,
    ResourceState, Tenancy,
};
use serde_json::{Map, Value, json};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::support::Random;

/// Texts that patterns, numbers, quotes or locales make awkward.
pub(super) const TEXTS: [&str; 60] = [
    "",
    "a",
    "A",
    "b",
    "B",
    "ab",
    "aB",
    "a-b",
    "a_b",
    "a b",
    "a%",
    "%",
    "_",
    "%a_",
    "\\",
    "a\\b",
    "\\%",
    "'",
    "\"",
    "`",
    "a\nb",
    "\t",
    "\u{1}",
    "\u{7f}",
    "é",
    "É",
    "e\u{301}",
    "ä",
    "z",
    "Z",
    "ß",
    "ss",
    "ı",
    "i",
    "I",
    "İ",
    "k",
    "K",
    "\u{212a}",
    "😀",
    "1",
    "01",
    "1.0",
    "1.5",
    "1e3",
    "1E3",
    "1000",
    "-0",
    "-1",
    "+1",
    " 1",
    "1e1000",
    "1e-999",
    "NaN",
    "true",
    "null",
    "{}",
    "[1, 2]",
    "9007199254740993",
    "(a)[b]{1}^$|+?*.",
];
/// Among them times at the limits of a microsecond, of a second and of a day.
pub(super) const MICROSECONDS: [i64; 9] = [
    0,
    1,
    999_999,
    1_000_000,
    1_500_000,
    60_000_000,
    3_600_000_000,
    50_399_999_999,
    50_400_000_000,
];
pub(super) const LABELS: [&str; 6] = ["env", "my-key", "x.io/in", "Shard", "é", "odd"];
pub(super) const CONDITIONS: [&str; 3] = ["Reconciled", "LastKnownReconciled", "DnsSuccessful"];
pub(super) const ACTORS: [&str; 6] = ["alice", "Alice", "bob@x.example", "ÄLICE", "älice", "a%"];

pub(super) fn text(random: &mut Random) -> String {
    let letters = "z".repeat(999);
    match random.below(24) {
        // Longer ones are compared with patterns by other means.
        0 => letters + random.pick(&["z", "é", "Z", "zz", "zzé", "Zé%"]),
        1 => "9".repeat(400 + random.below(2)),
        2 => format!("{}{}", random.pick(&TEXTS), random.pick(&TEXTS)),
        _ => random.pick(&TEXTS).to_owned(),
    }
}

pub(super) fn time(random: &mut Random) -> DateTime<Utc> {
    let base: DateTime<Utc> = "2026-01-01T10:00:00Z".parse().unwrap();
    base + TimeDelta::microseconds(random.pick(&MICROSECONDS))
}

/// Stores that many.
pub(super) async fn inserted(
    connection: &mut PgConnection,
    random: &mut Random,
    count: u32,
) -> Vec<Resource> {
    let mut made: Vec<Resource> = Vec::new();
    for number in 0..count {
        let clusters = made.iter().filter(|r| r.state.kind == "Cluster");
        let clusters: Vec<_> = clusters.map(|r| r.state.id).collect();
        let resource = any(random, number, &clusters);
        insert(connection, &resource).await;
        made.push(resource);
    }
    made
}

fn any(random: &mut Random, number: u32, clusters: &[ResourceId]) -> Resource {
    // The last kind is not configured.
    let kind = random.pick(&["Cluster", "Cluster", "NodePool", "NodePool", "Gone"]);
    let has_owner = kind != "Cluster" && !clusters.is_empty() && random.below(5) > 0;
    let id = (u128::from(random.next()) << 64) | u128::from(random.next());
    let name = format!(
        "{}{number}",
        random.pick(&["c", "C", "c-", "c%", "é", "c_", "c\\"])
    );
    let created_at = time(random);
    let deletion = (random.below(4) == 0).then(|| Deletion {
        at: time(random),
        by: random.pick(&ACTORS).to_owned(),
    });
    Resource {
        state: ResourceState {
            id: Uuid::from_u128(id).into(),
            kind: kind.to_owned(),
            name: ResourceName::stored(name),
            owner: has_owner.then(|| random.pick(clusters)),
            generation: random.pick(&[1, 2, 3, i32::MAX]),
            revision: 1,
            updated_at: time(random),
            deletion,
            conditions: conditions(random),
        },
        spec: spec(random),
        labels: labels(random),
        references: References::new(),
        tenancy: Tenancy::new(),
        created_at,
        created_by: random.pick(&ACTORS).to_owned(),
        updated_by: random.pick(&ACTORS).to_owned(),
    }
}

fn conditions(random: &mut Random) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for kind in CONDITIONS {
        if random.below(3) == 0 {
            continue;
        }
        conditions.push(Condition {
            created_at: time(random),
            last_transition_at: time(random),
            last_updated_at: time(random),
            message: None,
            observed_generation: random.pick(&[1, 2, 3, i32::MAX]),
            reason: None,
            status: random.pick(&[
                ConditionStatus::True,
                ConditionStatus::False,
                ConditionStatus::Unknown,
            ]),
            kind: kind.to_owned(),
        });
    }
    conditions
}

/// Labels as other writers may have stored them: no rule of requests applies.
fn labels(random: &mut Random) -> Labels {
    let mut labels = json!({});
    for key in LABELS {
        if random.below(3) > 0 {
            labels[key] = text(random).into();
        }
    }
    serde_json::from_value(labels).unwrap()
}

fn spec(random: &mut Random) -> Map<String, Value> {
    let mut spec = Map::new();
    for name in ["a", "b", "nested", "list", "n"] {
        let value = match (name, random.below(6)) {
            (_, 0) => continue,
            ("nested", 1..5) => object(random, 2),
            ("list", 1..5) => array(random, 2),
            ("n", 1..5) => number(random),
            _ => value(random, 2),
        };
        spec.insert(name.to_owned(), value);
    }
    spec
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => random.pick(&[true, false]).into(),
        2 | 3 => number(random),
        4 | 5 => text(random).into(),
        6 => array(random, depth),
        _ => object(random, depth),
    }
}

fn number(random: &mut Random) -> Value {
    match random.below(3) {
        0 => random
            .pick(&[0, 1, -1, 1000, i64::MIN, i64::MAX, 9_007_199_254_740_993])
            .into(),
        1 => random.pick(&[0, 3, u64::MAX]).into(),
        _ => random
            .pick(&[
                0.0,
                -0.0,
                1.0,
                1.5,
                2.5,
                -1.5,
                0.1,
                1000.0,
                1e16,
                1e21,
                1e-7,
                1e300,
                -1e300,
                1e-300,
                5e-324,
                f64::MAX,
                123_456.789,
            ])
            .into(),
    }
}

fn array(random: &mut Random, depth: usize) -> Value {
    let count = random.below(4);
    (0..count).map(|_| value(random, depth - 1)).collect()
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut object = json!({});
    for name in ["region", "list", "0", "zz", "é", "a\"\n", "B"] {
        if random.below(2) == 0 {
            object[name] = value(random, depth - 1);
        }
    }
    object
}

/// As writers do that know nothing of computed columns.
async fn insert(connection: &mut PgConnection, resource: &Resource) {
    let state = &resource.state;
    let result = sqlx::query(
        "INSERT INTO resources (id, owner_id, kind, name, generation, created_at, created_by, updated_at, updated_by,
                                deleted_at, deleted_by, spec, labels, conditions)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(state.id.as_uuid())
    .bind(state.owner.map(ResourceId::as_uuid))
    .bind(&state.kind)
    .bind(state.name.as_str())
    .bind(state.generation)
    .bind(resource.created_at)
    .bind(&resource.created_by)
    .bind(state.updated_at)
    .bind(&resource.updated_by)
    .bind(state.deletion.as_ref().map(|deletion| deletion.at))
    .bind(state.deletion.as_ref().map(|deletion| &deletion.by))
    .bind(Json(&resource.spec))
    .bind(Json(&resource.labels))
    .bind(Json(&state.conditions))
    .execute(connection)
    .await;
    result.unwrap();
}

//! How long rules may keep a change waiting: the worst that pass the start, on the most that there
//! may be, in a debug build and on a small stack.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hyperfleet_domain::condition_rules::{Data, Derived, Facts, RuleInput};
use hyperfleet_domain::entity_config::{self, EntityConfig};
use hyperfleet_domain::{
    ConditionStatus, Labels, ReportState, ReportedCondition, ResourceName, ResourceState, Tenancy,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::support::{root, ruled};

/// Processor time of one rule, also on a machine whose caches others fill. Without others each takes a fifth of a second at
/// most.
const PATIENCE: Duration = Duration::from_secs(5);

/// A resource and its reports.
struct Scene {
    state: ResourceState,
    facts: Facts,
    reports: Vec<ReportState>,
}

impl Scene {
    /// With that number of numbers in the spec, and that number of bytes of text in each report.
    fn with(numbers: usize, bytes: usize) -> Self {
        let at = DateTime::<Utc>::UNIX_EPOCH;
        let numbers: Vec<_> = (0..numbers).map(Value::from).collect();
        let adapters: Vec<_> = (0..14).map(|n| format!("a{n:03}")).collect();
        let data = members(json!({ "t": "ab".repeat(bytes / 4), "m": mixed(bytes / 2) }));
        let data = adapters.iter().map(|a| (a.clone(), Data::of(data.clone())));
        Self {
            facts: Facts {
                spec: members(json!({ "n": numbers })),
                labels: Labels::default(),
                tenancy: Tenancy::new(),
                created_at: at,
                created_by: "alice".to_owned(),
                updated_by: "alice".to_owned(),
                data: data.collect::<BTreeMap<_, _>>(),
            },
            state: ResourceState {
                id: Uuid::nil().into(),
                kind: "Cluster".to_owned(),
                name: ResourceName::stored("abc".to_owned()),
                owner: None,
                generation: 2,
                revision: 1,
                updated_at: at,
                deletion: None,
                conditions: Vec::new(),
            },
            reports: adapters.into_iter().map(report).collect(),
        }
    }

    /// What these rules make of it, and how much of a processor that takes: other tests run at the same time.
    fn derive(&self, messages: &[String]) -> (Derived, Duration) {
        let kinds: Vec<_> = (0..messages.len()).map(|n| format!("Worst{n}")).collect();
        let rules = kinds.iter().zip(messages);
        let rules: Vec<_> = rules
            .map(|(kind, message)| (kind.as_str(), "true", "true", message.as_str()))
            .collect();
        let kind: EntityConfig = ruled(&rules, root("Cluster", "clusters", &["dns"]));
        let registry = entity_config::registry(&[kind]).unwrap();
        let subject = RuleInput {
            state: &self.state,
            facts: &self.facts,
            reports: &self.reports,
            previous: &[],
        };
        let since = processor_time();
        let derived = registry
            .get("Cluster")
            .unwrap()
            .rules
            .as_ref()
            .unwrap()
            .derive(&subject);
        (derived, processor_time().saturating_sub(since))
    }
}

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

fn report(adapter: String) -> ReportState {
    let at = DateTime::<Utc>::UNIX_EPOCH;
    let conditions = (0..20).map(|n| ReportedCondition {
        last_transition_at: at,
        message: None,
        reason: None,
        status: ConditionStatus::True,
        kind: format!("Condition{n}"),
    });
    ReportState {
        adapter,
        observed_generation: 2,
        created_at: at,
        reported_at: at,
        conditions: conditions.collect(),
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("no object: {other}"),
    }
}

/// A text without any order: no automaton gets used to it.
fn mixed(bytes: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if state >> 63 == 0 { 'a' } else { 'b' }
    };
    (0..bytes).map(|_| next()).collect()
}

/// Rules that pass and do as much as they can in different ways.
fn worst() -> Vec<String> {
    let n = "resource.spec.n";
    let every = "statuses.map(s, s.data.t)";
    [
        format!("{n}.map(x, {n})"),
        format!("{n}.all(x, {n}.all(y, {n}.all(z, true)))"),
        format!("statuses.all(a, {n}.all(b, {n}.all(c, {n} == {n})))"),
        format!("{n}.map(x, [x, x, x, x, x, x, x, x])"),
        format!("[{}]", vec!["resource"; 40].join(", ")),
        format!(
            "{{{}}}",
            (0..40)
                .map(|k| format!("{k}: statuses"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        vec![n; 40].join(" + "),
        format!("{every}.map(t, t + t + t + t).map(t, t + t).map(t, t + t)"),
        "statuses.all(s, s.data.t.matches(\"(a|b|ab|ba|aab|abb)*(c|d)?((a|b)*[^a]){1,9}$\"))"
            .to_owned(),
        "statuses.all(s, s.data.m.matches(\"(a|b)*a(a|b){200}c\") || true)".to_owned(),
        "statuses.all(s, s.data.m.matches(\".{0,40}a.{0,40}b.{0,40}!\") || true)".to_owned(),
        "statuses.all(s, s.data.t.matches(\"(\\\\w{1,3}\\\\d?){1,3}[^b]$\"))".to_owned(),
        ["toJson(resource)"; 8].join(" + "),
        format!("{n}.filter(x, x in {n}).size() > 0"),
        format!("{n}.exists(x, statuses.exists(s, s.data.t.contains(\"abac\")))"),
        "statuses.map(s, optional.of(resource).?spec.?n.orValue([]))".to_owned(),
        format!("{n}.map(x, string(x) + string(x)).map(x, x + x).map(x, x + x).map(x, x + x)"),
        format!(
            "{n}.exists(x, true || {n}.all(y, y / 0 == 1)) || {n}.all(x, x / 0 == 1 || x > 100000)"
        ),
        format!("dig({n}.map(x, {{\"a\": x}}), \"17.a\")"),
        format!("{n}.map(x, {n}[x]).map(x, [[[[[[[[x]]]]]]]])"),
        format!("toJson({n}.map(x, timestamp(int(x)).getDayOfYear(\"+01:00\")))"),
        // Errors that hold what they complain of, swallowed by loops.
        format!("{n}.exists(x, resource + 1 == 2)"),
        format!("{n}.exists(x, {n}[x + 0.5] == 1)"),
        format!("{n}.exists(x, {{resource: 1}} == {{}})"),
        format!("{n}.exists(x, resource < 1 || -resource == 1 || resource.value())"),
        format!("{n}.exists(x, [{n}][0].y == dig(resource, \"spec\").z || x in resource)"),
        "statuses.map(s, s.data.t).map(t, bytes(t)).map(b, string(b)).map(t, t.size())".to_owned(),
        // Loops in loops, as deep as brackets may be.
        format!(
            "{}true{}",
            format!("{n}.all(x, ").repeat(15),
            ")".repeat(15)
        ),
        format!("{}x{}", format!("{n}.map(x, ").repeat(14), ")".repeat(14)),
        format!("{}x{}", "[1, 2].map(x, ".repeat(13), ")".repeat(13)),
        format!(
            "{}x / 0 == 1{}",
            format!("{n}.exists(x, x / 0 == 1 || ").repeat(12),
            ")".repeat(12)
        ),
        format!(
            "{}true{}",
            "statuses.exists(s, resource + 1 == 2 || ".repeat(12),
            ")".repeat(12)
        ),
        format!("{n}{}", ".map(x, x)".repeat(40)),
    ]
    .into()
}

#[test]
fn the_worst_rules_end_soon_on_a_small_stack() {
    let running = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        // What is far too much fails at once; what is almost too much takes longest.
        let scenes = [
            (17_000, 65_000),
            (8000, 16_000),
            (2000, 4000),
            (200, 1000),
            (40, 400),
        ];
        let scenes = scenes.map(|(numbers, bytes)| Scene::with(numbers, bytes));
        for rule in worst() {
            for scene in &scenes {
                // Bad as it is, it passes at start: it is the meter that holds it.
                let (derived, took) = scene.derive(std::slice::from_ref(&rule));
                println!("{took:?}, {} failures: {rule}", derived.failures.len());
                assert!(took < PATIENCE, "{took:?}: {rule}");
            }
        }
    });
    running.unwrap().join().unwrap();
}

#[test]
fn twenty_expensive_rules_end_soon_together() {
    let mut rules = worst();
    rules.truncate(20);
    // Of the larger one most fail at once, which is quick.
    for (values, bytes) in [(2_000, 4_000), (17_000, 65_000)] {
        let (derived, took) = Scene::with(values, bytes).derive(&rules);
        println!("{took:?}, {} failures", derived.failures.len());
        assert_eq!(derived.conditions.len() + derived.failures.len(), 20);
        assert!(took < PATIENCE, "{took:?}");
    }
}

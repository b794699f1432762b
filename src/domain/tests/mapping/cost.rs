//! However bad the rules that pass, and whatever they are given: they end soon, on a small stack.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Scene, faults, given, kind, previously, report, rule, saying};
use crate::domain::ConditionStatus::True;
use crate::domain::mapping::{Data, RULES_MAX, RuleConfig, TEXTS_BYTES_MAX, VALUES_MAX};

/// For one rule in a debug build on a busy machine. Alone on two cores each takes a tenth of a second
/// at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// Much to look at: so many numbers, and as many texts of so many bytes as there may be.
fn much(numbers: usize, bytes: usize) -> Scene {
    let mut scene = Scene::default();
    scene.reports.clear();
    scene.data.clear();
    let conditions: Vec<_> = (0..20).map(|n| format!("Condition{n}")).collect();
    let conditions: Vec<_> = conditions.iter().map(|c| (c.as_str(), True)).collect();
    for n in 0..14 {
        let adapter = format!("a{n:03}");
        scene.reports.push(report(&adapter, 2, &conditions));
        let text = "ab".repeat(bytes / 4);
        // Without any order: no automaton gets used to it.
        let mixed = (0..bytes / 2).scan(1_u64, |state, _| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            Some(if *state >> 63 == 0 { 'a' } else { 'b' })
        });
        let mixed: String = mixed.collect();
        scene.data.insert(adapter, json!({ "t": text, "m": mixed }));
    }
    let numbers: Vec<_> = (0..numbers).map(Value::from).collect();
    scene
        .resource
        .spec
        .insert("n".to_owned(), Value::from(numbers));
    scene
}

/// As much as there may be.
fn full() -> Scene {
    much(17_000, Data::BYTES_MAX - 20)
}

/// Rules that pass and do as much as they can in different ways.
fn worst() -> Vec<RuleConfig> {
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
    ]
    .into_iter()
    .map(|expression| saying(&expression))
    .collect()
}

#[test]
fn the_worst_rules_end_soon_on_a_small_stack() {
    let rules = worst();
    let running = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        // What is far too much fails at once; what is almost too much takes longest.
        let scenes: Vec<_> = [
            (17_000, 65_000),
            (8000, 16_000),
            (2000, 4000),
            (200, 1000),
            (40, 400),
        ]
        .map(|(numbers, bytes)| much(numbers, bytes))
        .into();
        for rule in rules {
            let said = rule.output.message.expression.clone();
            // Bad as they are, they pass at start: it is the meter that holds them.
            let registry = given::registry(&[kind(vec![rule])]);
            for scene in &scenes {
                let since = Instant::now();
                let derived = scene.derive_by(&registry);
                let took = since.elapsed();
                println!(
                    "{took:?} {:?} {said}",
                    derived.failures.first().map(|f| &f.error)
                );
                assert!(took < PATIENCE, "{took:?}: {said}");
            }
        }
    });
    running.unwrap().join().unwrap();
}

#[test]
fn the_deepest_rule_and_the_deepest_data_fit_a_small_stack() {
    let deep = "[".repeat(10) + "1" + &"]".repeat(10);
    let nested = "statuses.all(a, statuses.exists(b, [1].map(c, (((true ? ".to_owned()
        + &deep
        + " : [c]) == [1]))) == [true]))";
    let sum = vec!["\"a\""; 45].join(" + ");
    let negated = "!".to_owned() + &"(!".repeat(15) + "true" + &")".repeat(15);
    let mut data = json!(1);
    for _ in 0..60 {
        data = json!([data]);
    }
    let running = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            let mut scene = full();
            scene.resource.spec.insert("deep".to_owned(), data);
            for expression in [
                nested,
                sum,
                negated,
                "resource".to_owned() + &".spec".repeat(47),
            ] {
                let derived = scene.derive(vec![saying(&expression)]);
                assert_eq!(derived.conditions.len() + derived.failures.len(), 1);
            }
        });
    running.unwrap().join().unwrap();
}

#[test]
fn more_than_rules_may_be_given_fails_them_and_only_them() {
    let numbers = |count: usize| Value::from((0..count).map(Value::from).collect::<Vec<_>>());
    let text = |bytes: usize| Value::from("t".repeat(bytes));
    for (what, spec, fits) in [
        ("values", numbers(VALUES_MAX - 100), true),
        ("values", numbers(VALUES_MAX), false),
        ("texts", text(TEXTS_BYTES_MAX - 1000), true),
        ("texts", text(TEXTS_BYTES_MAX), false),
    ] {
        let mut scene = Scene {
            previous: vec![previously(True)],
            ..Scene::default()
        };
        scene.resource.spec.insert("s".to_owned(), spec);
        let derived = scene.derive(vec![rule("false", "true", "\"\"", "\"\"")]);
        let kept = if fits { vec![] } else { scene.previous };
        assert_eq!(derived.conditions, kept, "{what}");
        assert_eq!(derived.failures.is_empty(), fits, "{what}");
    }
    let data = |bytes: usize| json!({ "t": "t".repeat(bytes - "{'t':''}".len()) });
    for (bytes, fits) in [(Data::BYTES_MAX, true), (Data::BYTES_MAX + 1, false)] {
        let mut scene = Scene::default();
        scene.data.insert("dns".to_owned(), data(bytes));
        let derived = scene.derive(vec![saying("\"m\"")]);
        assert_eq!(derived.conditions.len(), usize::from(fits));
        assert_eq!(derived.failures.is_empty(), fits);
    }
}

#[test]
fn a_rule_that_costs_too_much_is_told_even_if_it_swallows_the_error() {
    let swallowing = "[1].exists(x, resource.spec.n.map(a, resource.spec.n) == []) || true";
    let scene = full();
    let said = scene.one(rule(swallowing, "true", "\"\"", "\"\""));
    assert_eq!(said, Err("it costs too much on this data".to_owned()));
    // The next rule starts afresh.
    let mut rules = vec![rule(swallowing, "true", "\"\"", "\"\""), saying("\"m\"")];
    rules[1].kind = "Zz".to_owned();
    let derived = scene.derive(rules);
    assert_eq!((derived.conditions.len(), derived.failures.len()), (1, 1));
}

#[test]
fn as_many_rules_as_there_may_be_end_soon_together() {
    let mut rules = worst();
    rules.truncate(RULES_MAX);
    assert_eq!(rules.len(), RULES_MAX);
    for (n, rule) in rules.iter_mut().enumerate() {
        rule.kind = format!("Worst{n}");
    }
    let registry = given::registry(&[kind(rules)]);
    let scene = full();
    let since = Instant::now();
    let derived = scene.derive_by(&registry);
    println!("{:?}, {} failures", since.elapsed(), derived.failures.len());
    assert!(since.elapsed() < PATIENCE * 4, "{:?}", since.elapsed());
}

/// Expressions that mostly make sense, over what rules see.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("statuses".to_owned()),
        Just("resource".to_owned()),
        Just("resource.spec".to_owned()),
        Just("resource.spec.a".to_owned()),
        Just("statuses[0].data.?zone".to_owned()),
        Just("null".to_owned()),
        Just("b\"x\"".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("double(\"{n}\")")),
        "[a-zé\\\\']{0,6}".prop_map(|text| format!("{:?}", text.replace('\\', ""))),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), "(\\+|-|\\*|/|%|==|<|in|&&|\\|\\|)")
                .prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            pair.clone().prop_map(|(a, b)| format!("{a}.map(x, {b} == x)")),
            pair.clone().prop_map(|(a, b)| format!("dig({a}, string({b}))")),
            pair.prop_map(|(a, b)| format!("{{\"k\": {a}, {b}: 1}}[\"k\"]")),
            (inner.clone(), "(toJson|string|int|uint|double|bool|bytes|size|type|timestamp|duration|optional.of)")
                .prop_map(|(a, f)| format!("{f}({a})")),
            (inner.clone(), "(-|!)").prop_map(|(a, op)| format!("{op}({a})")),
            inner.prop_map(|a| format!("{a}.?b[?0].orValue({a})")),
        ]
    })
}

proptest! {
    // Each case parses a dozen expressions, which is slow in a debug build.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No rule panics, stops the others or is anything but deterministic.
    #[test]
    fn no_rule_does_any_harm(when in expression(), said in expression(), value in json_value()) {
        let mut scene = Scene {
            previous: vec![previously(True)],
            ..Scene::default()
        };
        scene.resource.spec.insert("a".to_owned(), value);
        let mut rules = vec![rule(&when, "true", "\"\"", &said), saying(&said), saying("\"m\"")];
        rules[1].kind = "Said".to_owned();
        rules[2].kind = "Good".to_owned();
        if faults(rules.clone()).is_empty() {
            let derived = scene.derive(rules.clone());
            prop_assert_eq!(&derived, &scene.derive(rules));
            prop_assert_eq!(derived.conditions[0].kind.as_str(), "Good");
            for failure in &derived.failures {
                let kept = derived.conditions.iter().find(|c| c.kind == failure.rule);
                let before = scene.previous.iter().find(|c| c.kind == failure.rule);
                prop_assert_eq!(kept, before);
                prop_assert_ne!(failure.error.as_str(), "the interpreter gave up");
            }
        }
    }

    /// No text at all does any harm at start.
    #[test]
    fn no_text_is_too_much_for_the_start(text in "([()\\[\\]{}?:.,+!a-z0-9'\"\\\\ ]|statuses|map|x,){0,60}") {
        let _ = faults(vec![saying(&text)]);
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[ab]|token", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

//! Bad rules that pass the checks do no harm, whatever their input. Their time is measured in
//! `tests/it/rule_costs.rs`.

use hyperfleet_expressions::{TEXTS_BYTES_MAX, VALUES_MAX};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Scene, errors, previously, rule, saying};
use crate::ConditionStatus::True;
use crate::condition_rules::Data;

/// A spec with that number of numbers.
fn numbers(count: usize) -> Scene {
    let mut scene = Scene::default();
    let numbers: Vec<_> = (0..count).map(Value::from).collect();
    let spec = &mut scene.resource.spec;
    spec.insert("n".to_owned(), Value::from(numbers));
    scene
}

#[test]
fn the_deepest_rule_and_the_deepest_data_fit_a_small_stack() {
    let deep = "[".repeat(10) + "1" + &"]".repeat(10);
    let nested = "statuses.all(a, statuses.exists(b, [1].map(c, (((true ? ".to_owned()
        + &deep
        + " : [c]) == [1]))) == [true]))";
    let sum = vec!["\"a\""; 45].join(" + ");
    let negated = "!".to_owned() + &"(!".repeat(15) + "true" + &")".repeat(15);
    // As many loops as pass: in each other, and each over what the one before it gives.
    let deepest = |loops: &dyn Fn(usize) -> String| {
        let passing = (1..).map(loops);
        let passing = passing.take_while(|e| errors(vec![saying(e)]).is_empty());
        passing.last().expect("one loop passes")
    };
    let open = |open: &str, n: usize| open.repeat(n) + "[1]" + &")".repeat(n);
    let nested_loops = deepest(&|n| open("[1].map(x, ", n));
    let swallowing = deepest(&|n| open("statuses.exists(x, resource + 1 == ", n));
    let chained = deepest(&|n| "[1]".to_owned() + &".map(x, x)".repeat(n));
    // Each makes lists of fifteen levels out of what the one before it has made.
    let brackets = |n: usize| "[".repeat(n) + "x" + &"]".repeat(n);
    let nesting = format!(".map(x, {})", brackets(15));
    let nested_values = deepest(&|n| "[1]".to_owned() + &nesting.repeat(n));
    let compared_values = deepest(&|n| {
        let values = "[1]".to_owned() + &nesting.repeat(n);
        format!("{values} == {values}")
    });
    assert!(nested_values.matches("(x,").count() > 15);
    let count = |text: &str| text.matches("(x,").count();
    assert!(count(&nested_loops) > 10 && count(&chained) > 40);
    let mut data = json!(1);
    for _ in 0..60 {
        data = json!([data]);
    }
    let running = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            let mut scene = numbers(10_000);
            scene.resource.spec.insert("deep".to_owned(), data);
            for expression in [
                nested,
                sum,
                negated,
                "resource".to_owned() + &".spec".repeat(47),
                nested_loops,
                swallowing,
                chained,
                nested_values,
                compared_values,
            ] {
                let derived = scene.derive(vec![saying(&expression)]);
                assert_eq!(derived.conditions.len() + derived.failures.len(), 1);
            }
        });
    running.unwrap().join().unwrap();
}

#[test]
fn input_above_the_limit_fails_only_the_rules_that_read_it() {
    let numbers = |count: usize| numbers(count).resource.spec["n"].clone();
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
        let expected = if fits { vec![] } else { scene.previous };
        assert_eq!(derived.conditions, expected, "{what}");
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
fn a_rule_over_its_cost_fails_even_if_it_handles_the_error() {
    let swallowing = "[1].exists(x, resource.spec.n.map(a, resource.spec.n) == []) || true";
    let scene = numbers(10_000);
    let said = scene.one(rule(swallowing, "true", "\"\"", "\"\""));
    assert_eq!(said, Err("when: it costs too much on this data".to_owned()));
    // The next rule starts afresh.
    let mut rules = vec![rule(swallowing, "true", "\"\"", "\"\""), saying("\"m\"")];
    rules[1].kind = "Zz".to_owned();
    let derived = scene.derive(rules);
    assert_eq!((derived.conditions.len(), derived.failures.len()), (1, 1));
}

#[test]
fn a_rule_that_multiplies_its_values_fails_and_keeps_its_condition() {
    let eight = ["x"; 8].join(" + ");
    for expression in [
        "[\"t\"]".to_owned() + &format!(".map(x, {eight})").repeat(7),
        "[[1]]".to_owned() + &format!(".map(x, {eight})").repeat(7) + "[0]",
        "resource.spec.n.map(a, resource.spec.n.map(b, resource.spec.n))".to_owned(),
    ] {
        let mut scene = numbers(1000);
        scene.previous = vec![previously(True)];
        let derived = scene.derive(vec![saying(&expression)]);
        assert_eq!(derived.conditions, scene.previous, "{expression}");
        let errors: Vec<_> = derived.failures.iter().map(|f| f.error.as_str()).collect();
        let expected = ["message: it costs too much on this data"];
        assert_eq!(errors, expected, "{expression}");
    }
}

#[test]
fn what_is_found_when_nothing_is_left_ends_the_rule() {
    // Whatever stands behind the last unit: a text, a list, a map, an optional.
    for last in [
        "\"t\"",
        "[1]",
        "{1: 1}",
        "optional.of(1)",
        "b\"b\"",
        "x",
        "null",
    ] {
        let said =
            format!("resource.spec.n.exists(x, [resource.spec, {last}] == [{last}, {last}])");
        let error = numbers(10_000).one(saying(&said)).unwrap_err();
        assert_eq!(error, "message: it costs too much on this data", "{last}");
    }
}

/// Expressions that mostly make sense, over what rules see.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("statuses".to_owned()),
        Just("[1, 2, 3]".to_owned()),
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
            (inner.clone(), inner.clone(), "(map|filter|all|exists)")
                .prop_map(|(a, b, f)| format!("{a}.{f}(x, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
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
        if errors(rules.clone()).is_empty() {
            let derived = scene.derive(rules.clone());
            prop_assert_eq!(&derived, &scene.derive(rules));
            prop_assert_eq!(derived.conditions[0].kind.as_str(), "Good");
            for failure in &derived.failures {
                let stored = derived.conditions.iter().find(|c| c.kind == failure.rule);
                let before = scene.previous.iter().find(|c| c.kind == failure.rule);
                prop_assert_eq!(stored, before);
                prop_assert!(!failure.error.ends_with("the interpreter gave up"));
            }
        }
    }

    /// Nor when it is run so often that it costs too much, wherever that shows.
    #[test]
    fn no_rule_does_any_harm_in_a_long_loop(a in expression(), b in expression()) {
        let said = saying(&format!("resource.spec.n.exists(x, [{a}] == [{b}])"));
        if errors(vec![said.clone()]).is_empty() {
            let failures = numbers(3000).derive(vec![said]).failures;
            let gave_up = failures.iter().any(|f| f.error.ends_with("the interpreter gave up"));
            prop_assert!(!gave_up, "{failures:?}");
        }
    }

    /// Any text is either a rule or has one error, which names the expression and stays short.
    #[test]
    fn any_text_has_one_short_error_at_most(text in "([()\\[\\]{}?:.,+!a-z0-9'\"\\\\ ]|statuses|map|x,){0,60}") {
        let errors = errors(vec![saying(&text)]);
        prop_assert!(errors.len() <= 1, "{errors:?}");
        for error in errors {
            prop_assert!(error.contains("whose output.message.expression "), "{error}");
            prop_assert!(error.len() < 400, "{error}");
        }
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

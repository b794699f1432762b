//! Expressions in the hands of a program; the tests of condition rules cover the language itself
//! (`crates/domain/src/tests/mapping`).

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    CelValue, DataSize, Evaluation, Expression, MASK, Meter, TEXTS_BYTES_MAX, VALUES_MAX,
    is_evaluating,
};

const VARIABLES: &[&str] = &["resource", "index", "name"];

fn compiled(source: &str) -> Expression {
    Expression::compile(source, VARIABLES).unwrap_or_else(|error| panic!("{source} {error}"))
}

static RESOURCE: LazyLock<Value> = LazyLock::new(|| {
    json!({ "spec": {
        "replicas": 5, "half": 0.5, "large": 1e20, "huge": u64::MAX, "least": i64::MIN,
        "password": "hunter2", "zones": ["a", "b"], "nothing": null, "on": true
    }})
});

/// The result of `run` for an expression over [`RESOURCE`], the index 3 and the name `n`.
fn with<T>(
    source: &str,
    run: impl Fn(&mut Evaluation<'static>, &Expression, &Meter) -> Result<T, String>,
) -> Result<T, String> {
    let mut evaluation = Evaluation::new([
        ("resource", CelValue::masked(&RESOURCE)),
        ("index", CelValue::int(3)),
        ("name", CelValue::text("n")),
    ]);
    run(&mut evaluation, &compiled(source), &Meter::default())
}

#[test]
fn a_map_cannot_be_added_to_a_list() {
    for source in [
        "size([1] + {\"a\": 1, \"b\": 2})",
        "size(resource.spec.zones + resource.spec)",
        "size([[1]].map(x, x + {1: 2}))",
    ] {
        let error = with(source, Evaluation::run_integer).unwrap_err();
        assert_eq!(error, "\"+\" failed on its arguments", "{source}");
    }
    let size = with(
        "size(resource.spec.zones + [\"c\"])",
        Evaluation::run_integer,
    );
    assert_eq!(size, Ok(3));
}

#[test]
fn an_integer_is_a_whole_number_of_any_type() {
    for (source, expected) in [
        ("index + 1", Some(4)),
        ("resource.spec.replicas", Some(5)),
        ("resource.spec.replicas * -2.0", Some(-10)),
        ("resource.spec.least", Some(i64::MIN)),
        ("-0.0", Some(0)),
        ("7u", Some(7)),
        ("resource.spec.huge", None),
        ("resource.spec.large", None),
        ("resource.spec.half", None),
        ("1.0 / 0.0", None),
        ("\"5\"", None),
        ("resource.spec.on", None),
        ("resource.spec.nothing", None),
    ] {
        let integer = with(source, Evaluation::run_integer);
        let expected = expected.ok_or_else(|| "it is no whole number".to_owned());
        assert_eq!(integer, expected, "{source}");
    }
}

#[test]
fn a_bool_is_no_text_that_looks_like_one() {
    assert_eq!(with("index > 2", Evaluation::run_bool), Ok(true));
    let error = Err("it is neither true nor false".to_owned());
    assert_eq!(with("\"true\"", Evaluation::run_bool), error);
}

#[test]
fn values_become_texts_and_json() {
    let list = json!(["a", "b"]);
    let map = json!({"a": null, "b": [3]});
    for (source, text, value) in [
        ("name + \"-1\"", "n-1", json!("n-1")),
        ("resource.spec.replicas", "5", json!(5)),
        ("resource.spec.half", "0.5", json!(0.5)),
        (
            "resource.spec.huge",
            "18446744073709551615",
            json!(u64::MAX),
        ),
        ("resource.spec.nothing", "", Value::Null),
        ("resource.spec.on", "True", json!(true)),
        (
            "{\"b\": [index], \"a\": null}",
            "{\"a\":null,\"b\":[3]}",
            map,
        ),
        ("resource.spec.password", MASK, json!(MASK)),
        ("resource.spec.zones", "[\"a\",\"b\"]", list),
    ] {
        assert_eq!(
            with(source, Evaluation::run_text),
            Ok(text.to_owned()),
            "{source}"
        );
        assert_eq!(with(source, Evaluation::run_json), Ok(value), "{source}");
    }
    for source in ["b\"x\"", "duration(\"1s\")", "optional.of(1)", "1.0 / 0.0"] {
        let text = with(source, Evaluation::run_text);
        assert_eq!(text, Err("it is no text".to_owned()), "{source}");
        let json = with(source, Evaluation::run_json);
        assert_eq!(json, Err("it has no form in JSON".to_owned()), "{source}");
    }
    let nul = with("\"\\u0000\"", Evaluation::run_text);
    assert_eq!(nul, Err("it is no text".to_owned()));
}

#[test]
fn a_name_that_is_not_there_is_answered_with_those_that_are() {
    let error = |variables| Expression::compile("statuses[0]", variables).unwrap_err();
    assert_eq!(
        error(VARIABLES),
        "names \"statuses\", which is not there: rules see `resource`, `index` and `name`, and loops their own variable"
    );
    assert!(error(&["resource"]).contains("rules see `resource`, and loops"));
    assert!(error(&[]).contains("rules see no variable, and loops"));
}

#[test]
fn a_variable_without_a_value_fails_its_expression() {
    let mut evaluation = Evaluation::new([]);
    let index = evaluation.run_integer(&compiled("index"), &Meter::default());
    assert_eq!(index, Err("there is no \"index\"".to_owned()));
}

#[test]
fn expressions_that_share_a_meter_share_its_units() {
    let numbers: Vec<_> = (0..1000).map(Value::from).collect();
    let numbers = Value::from(numbers);
    let mut evaluation = Evaluation::new([("resource", CelValue::masked(&numbers))]);
    let expression = compiled("resource.all(x, x >= 0.0)");
    let shared = Meter::default();
    let mut run = |meter: &Meter| evaluation.run_bool(&expression, meter);
    let first_failure = (0..100).find(|_| run(&shared).is_err());
    assert!(
        first_failure.is_some_and(|after| after > 1),
        "{first_failure:?}"
    );
    assert_eq!(
        run(&shared),
        Err("it costs too much on this data".to_owned())
    );
    assert_eq!(run(&Meter::default()), Ok(true));
}

#[test]
fn a_panic_fails_one_run_and_leaves_the_next_as_it_is() {
    let mut evaluation = Evaluation::new([("index", CelValue::int(1))]);
    let (expression, meter) = (compiled("index"), Meter::default());
    let panicked = evaluation.run(&expression, &meter, |_| -> Result<(), _> {
        panic!("evaluating: {}", is_evaluating())
    });
    assert_eq!(panicked, Err("the interpreter gave up".to_owned()));
    assert_eq!(evaluation.run_integer(&expression, &meter), Ok(1));
    assert!(!is_evaluating());
}

#[test]
fn a_deep_expression_runs_on_a_small_stack() {
    let shallow = compiled("resource.spec");
    assert!(!shallow.is_deep());
    let source = format!(
        "[1]{}",
        ".map(x, [[[[[[[[[[[[[[[x]]]]]]]]]]]]]]])".repeat(10)
    );
    let deep = compiled(&source);
    assert!(deep.is_deep());
    let running = std::thread::Builder::new().stack_size(128 << 10);
    let running = running.spawn(move || {
        let mut evaluation = Evaluation::new([]);
        evaluation.run_text(&deep, &Meter::default())
    });
    let text = running.unwrap().join().unwrap().unwrap();
    assert_eq!(text, "[".repeat(151) + "1" + &"]".repeat(151));
}

#[test]
fn data_is_counted_with_everything_in_it() {
    let size_of = |value: &Value| {
        let mut size = DataSize::default();
        size.add(value);
        size
    };
    let numbers = |count: usize| Value::from(vec![0; count]);
    assert_eq!(size_of(&numbers(VALUES_MAX - 1)).excess(), None);
    assert_eq!(
        size_of(&numbers(VALUES_MAX)).excess(),
        Some("more than 20000 values or 1048576 bytes of text".to_owned())
    );
    let texts = |bytes: usize| json!({ "ab": ["t".repeat(bytes - 2)] });
    assert_eq!(size_of(&texts(TEXTS_BYTES_MAX)).excess(), None);
    assert!(size_of(&texts(TEXTS_BYTES_MAX + 1)).excess().is_some());
    let mut size = size_of(&numbers(VALUES_MAX - 3));
    size.add_texts(2, TEXTS_BYTES_MAX);
    assert_eq!(size.excess(), None);
    size.add_texts(0, 1);
    assert!(size.excess().is_some());
}

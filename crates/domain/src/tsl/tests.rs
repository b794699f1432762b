//! Tests of complete searches.

mod evaluate;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::expression::{Expression, UNSUPPORTED};
use super::number::Number;
use super::*;

fn error(text: &str) -> String {
    match parse(text) {
        Ok(filter) => panic!("{text} was taken as {filter:?}"),
        Err(error) => error.to_string(),
    }
}

/// Both are parsed to the same filter.
fn assert_same(one: &str, other: &str) {
    let read = |text: &str| parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(read(one), read(other), "{one} and {other}");
}

#[test]
fn every_text_of_the_corpus_keeps_the_laws() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/search");
    let files = std::fs::read_dir(folder).unwrap();
    let paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(paths.len() >= 100, "{} texts in {folder}", paths.len());
    for path in paths {
        // The fuzz target also reads any bytes as text.
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(laws::check_search(&text), Ok(()), "{}", path.display());
    }
}

#[test]
fn one_thing_may_be_said_in_several_ways() {
    for (one, other) in [
        ("name = 'a'", "name='a'"),
        ("name = 'a'", "name == \"a\""),
        ("name = 'a'", "name = `a`"),
        ("name = 'a'", "'a' = name"),
        ("name = 'a'", "((name) = ('a'))"),
        ("name = 'a'", "\t\n(name='a') "),
        ("name != 'a'", "name <> 'a'"),
        ("generation < 5", "5 > generation"),
        ("generation <= 5", "5 >= generation"),
        ("generation = 5", "generation = 5.0"),
        ("generation = 5000", "generation = 5k"),
        ("generation = 5120", "generation = 5Ki"),
        ("generation = 300", "generation = 3e2"),
        ("spec.a = -5", "spec.a = - 5"),
        ("name in ['a', 'b']", "name IN ('a','b',)"),
        ("name in ['a']", "name in ('a')"),
        ("name in []", "name in ()"),
        ("name is null", "name IS NULL"),
        ("name is not null", "not name is null"),
        ("name not in ['a']", "not name in ['a']"),
        ("name not like 'a%'", "not (name like 'a%')"),
        (
            "name not between 'a' and 'b'",
            "not name between 'a' and 'b'",
        ),
        (
            "not name = 'a' and id = 'b'",
            "(not (name = 'a')) and id = 'b'",
        ),
        ("not not name = 'a'", "name = 'a'"),
        (
            "name = 'a' or name = 'b' and id = 'c'",
            "name = 'a' or (name = 'b' and id = 'c')",
        ),
        (
            "not (name = 'a' or id = 'b')",
            "not name = 'a' and not id = 'b'",
        ),
        (
            "not (name = 'a' and id = 'b')",
            "not name = 'a' or not id = 'b'",
        ),
        (
            "created_time between '2026-01-01' and '2026-01-02' and name = 'a'",
            "(created_time between 2026-01-01 and 2026-01-02) and name = 'a'",
        ),
        (
            "created_time > '2026-01-01'",
            "created_time > 2026-01-01T00:00:00Z",
        ),
        (
            "created_time > '2026-01-01T00:00:00Z'",
            "created_time > '2026-01-01T02:00:00.000+02:00'",
        ),
        ("labels.a = '5'", "labels.a = 5"),
        ("labels.a = 'true'", "labels.a = true"),
        ("labels.and = 'a'", "'a' = labels.and"),
        ("spec.a = 'true'", "spec.a = TRUE"),
        ("spec.a in [1, 'x']", "spec.a in ['1', 'x']"),
        ("name = 'it\\'s'", "name = \"it's\""),
        ("name = 'a\\qb\\n'", "name = 'aqb\n'"),
    ] {
        assert_same(one, other);
    }
}

#[test]
fn every_key_that_a_label_may_have_can_be_asked_for() {
    for key in ["a", "my-key", "a.b/c-d_e.f", "A--b", "1", "and", "x.io/in"] {
        let Ok(Filter::Test(test)) = parse(&format!("labels.{key}='x'")) else {
            panic!("{key} was not read");
        };
        assert_eq!(test.field, Field::Label(key.to_owned()));
    }
}

#[test]
fn errors_of_syntax_point_at_the_character() {
    for (text, message) in [
        (
            "",
            "failed to parse search query: syntax error at position 0:\n\n^",
        ),
        (
            "name =",
            "failed to parse search query: syntax error at position 6:\nname =\n      ^",
        ),
        (
            "name = 'a' id = 'b'",
            "failed to parse search query: syntax error at position 11:\nname = 'a' id = 'b'\n           ^",
        ),
        (
            "name = 'ä' and x = 'y",
            "failed to parse search query: Unterminated string at position 19:\nname = 'ä' and x = 'y\n                   ^",
        ),
        (
            "name = 'ä' & 1",
            "failed to parse search query: Unexpected character '&' at position 11:\nname = 'ä' & 1\n           ^",
        ),
        (
            "name ! 'a'",
            "failed to parse search query: Unexpected character '!' at position 5:\nname ! 'a'\n     ^",
        ),
        (
            "name = 'a') OR (name = 'b'",
            "failed to parse search query: syntax error at position 10:\nname = 'a') OR (name = 'b'\n          ^",
        ),
        (
            "generation = 1e999",
            "failed to parse search query: number out of range at position 13:\ngeneration = 1e999\n             ^",
        ),
        (
            "a = b = c",
            "failed to parse search query: comparisons cannot be chained at position 6:\na = b = c\n      ^",
        ),
    ] {
        assert_eq!(error(text), message);
    }
    for text in [
        "name = null",
        "name is 'a'",
        "name not 'a'",
        "name not = 'a'",
        "name in ['a' 'b']",
        "name in ['a'",
        "name in [,]",
        "name between 'a'",
        "and",
        "name = 'a' and",
        "(name = 'a'",
        "name = 'a\\",
        "labels.a- = 'x'",
        "name = 'a\0b'",
        "labels.a[\0] is null",
        "name = 'a\\\0'",
        "created_time > 2026-01-01T10:00:00",
    ] {
        let said = error(text);
        assert!(
            said.starts_with("failed to parse search query: "),
            "{text}: {said}"
        );
    }
}

#[test]
fn everything_has_a_limit() {
    let long = |length: usize| format!("name = '{}'", "a".repeat(length - 9));
    assert!(parse(&long(4096)).is_ok());
    let said = error(&long(4097));
    assert_eq!(
        said,
        "search query exceeds maximum length of 4096 characters"
    );

    let deep = |levels: usize| format!("{}name='a'{}", "(".repeat(levels), ")".repeat(levels));
    assert!(parse(&deep(64)).is_ok());
    assert!(error(&deep(65)).contains("nesting deeper than 64 levels at position 65"));
    assert!(parse(&format!("{}name='a'", "not ".repeat(64))).is_ok());
    assert!(error(&format!("{}name='a'", "not ".repeat(65))).contains("nesting deeper"));
    assert!(error(&format!("spec.a={}5", "-".repeat(65))).contains("nesting deeper"));

    let listed = |count: usize| format!("spec.a in [{}]", vec!["1"; count].join(","));
    assert!(parse(&listed(1000)).is_ok());
    assert!(error(&listed(1001)).contains("list of more than 1000 elements"));
    // What goes on, does not go deeper.
    let tests = |test: &str, count: usize| vec![test; count].join(" or ");
    assert!(parse(&tests("id='a'", 100)).is_ok());
    assert_eq!(
        error(&tests("id='a'", 101)),
        "search has more than 100 tests"
    );
    assert!(parse(&tests("not spec.a=1", 16)).is_ok());
    let said = "search looks at more than 16 values of specs";
    assert_eq!(error(&tests("spec.a=1", 17)), said);
    assert_eq!(error(&tests("spec.a=spec.b", 9)), said);
    let like = |length: usize| format!("name like '{}'", "%".repeat(length));
    assert!(parse(&like(256)).is_ok());
    assert_eq!(error(&like(257)), "a pattern must have at most 256 bytes");
}

/// Searches without a meaning for resources, and their messages.
const MEANINGLESS: &[(&str, &str)] = &[
    ("generation = 'a'", "field 'generation' expects an integer"),
    (
        "generation = -1",
        "field 'generation' expects an integer without a sign",
    ),
    (
        "generation = -0",
        "field 'generation' expects an integer without a sign",
    ),
    (
        "generation = 9223372036854775808",
        "value 9223372036854775808 is out of 64-bit integer range for field 'generation'",
    ),
    (
        "created_time > '2026- 1- 1'",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "created_time > '+026-01-01'",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    ("generation = 1.5", "field 'generation' expects an integer"),
    ("generation = name", "field 'generation' expects an integer"),
    ("name = generation", "field 'generation' expects an integer"),
    (
        "generation in [1, 'a']",
        "field 'generation' expects an integer",
    ),
    (
        "generation like '1%'",
        "field 'generation' expects an integer",
    ),
    (
        "generation between 'a' and 'b'",
        "field 'generation' expects an integer",
    ),
    (
        "created_time = 'yesterday'",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "created_time > '2026-13-45'",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "created_time > 2026-13-45",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "5 < deleted_time",
        "field 'deleted_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "updated_time in ['2026-01-01', 5]",
        "field 'updated_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    ("labels. = 'a'", "label key cannot be empty"),
    (
        "status.conditions. = 'True'",
        "condition type cannot be empty",
    ),
    (
        "status.conditions.A.b.c = 'True'",
        "invalid condition format: expected status.conditions.<Type> or status.conditions.<Type>.<subfield>",
    ),
    (
        "status.conditions.reconciled = 'True'",
        "condition type 'reconciled' is invalid: must be PascalCase (e.g., Reconciled, Available)",
    ),
    (
        "status.conditions.A.created_time > '2026-01-01T00:00:00Z'",
        "condition subfield 'created_time' is not supported; use last_updated_time, last_transition_time, or observed_generation",
    ),
    (
        "status.conditions.A < 'True'",
        "only equality operator (=) is supported for condition status queries",
    ),
    (
        "status.conditions.A between 'False' and 'True'",
        "BETWEEN is not supported for condition queries; use comparison operators (=, !=, <, <=, >, >=)",
    ),
    (
        "status.conditions.A = 'true'",
        "condition status 'true' is invalid: must be True, False, or Unknown",
    ),
    (
        "status.conditions.A in ['True', 'Maybe']",
        "condition status 'Maybe' is invalid: must be True, False, or Unknown",
    ),
    (
        "status.conditions.A.last_updated_time < '2026-01-01'",
        "invalid timestamp for condition subfield: expected RFC3339 format (e.g., 2026-01-01T00:00:00Z)",
    ),
    (
        "status.conditions.A.observed_generation = 3.5",
        "expected integer value for condition subfield 'observed_generation', got 3.5",
    ),
    (
        "status.conditions.A.observed_generation = 3e9",
        "value 3e+09 is out of 32-bit integer range for condition subfield 'observed_generation'",
    ),
    (
        "status.conditions.A.last_updated_time like '2026%'",
        "LIKE/ILIKE is not supported for condition queries; use comparison operators (=, !=, <, <=, >, >=)",
    ),
    ("spec. = 'a'", "spec field segment cannot be empty"),
    ("spec.a..b = 'a'", "spec field segment cannot be empty"),
    (
        "spec.aB = 'a'",
        "spec field segment 'aB' is invalid: must contain only lowercase letters, digits, and underscores",
    ),
    (
        "spec.a[0] = 'a'",
        "spec field segment 'a[0]' is invalid: must contain only lowercase letters, digits, and underscores",
    ),
    ("Name = 'a'", "Name is not a valid field name"),
    ("a..b = 'a'", "a..b is not a valid field name"),
    ("ünder = 'a'", "ünder is not a valid field name"),
    (
        "properties.foo = 'a'",
        "properties is not a related resource of Resource",
    ),
    (
        "label.env = 'a'",
        "label is not a related resource of Resource",
    ),
    (
        "status.phase = 'a'",
        "status is not a related resource of Resource",
    ),
    ("nmae = 'a'", "invalid field in search or order query"),
    ("spec = 'x'", "invalid field in search or order query"),
    ("tenancy = 'x'", "invalid field in search or order query"),
    ("name ~= 'a'", "unsupported comparison operator: REQ"),
    ("name ~! 'a'", "unsupported comparison operator: RNE"),
    ("generation = 1 + 2", "unsupported comparison operator: ADD"),
    ("generation - 1 = 2", "unsupported comparison operator: SUB"),
    ("generation * 2 = 2", "unsupported comparison operator: MUL"),
    ("generation / 2 = 2", "unsupported comparison operator: DIV"),
    ("generation % 2 = 0", "unsupported comparison operator: MOD"),
    ("len name = 2", "unsupported comparison operator: LEN"),
    ("any name = 'a'", "unsupported comparison operator: ANY"),
    ("all name = 'a'", "unsupported comparison operator: ALL"),
    ("sum generation = 2", "unsupported comparison operator: SUM"),
    ("name in 'a'", "expected array on right side of IN"),
    (
        "name",
        "expected a comparison, such as name = 'x', found: name",
    ),
    (
        "true",
        "expected a comparison, such as name = 'x', found: true",
    ),
    (
        "['a', 1, true, name, 1 + 2, (a = 1)]",
        "expected a comparison, such as name = 'x', found: ['a', 1, true, name, …, …]",
    ),
    ("1 = 1", "a comparison needs a field on one side"),
    (
        "'a' in ['a']",
        "a comparison needs a field on its left side",
    ),
    (
        "name = ['a']",
        "a field can be compared with a text, a number, true or false",
    ),
    (
        "name = (id = 'a')",
        "a field can be compared with a text, a number, true or false",
    ),
    (
        "created_time = name",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "status.conditions.A.observed_generation = status.conditions.A.last_updated_time",
        "fields 'status.conditions.A.observed_generation' and 'status.conditions.A.last_updated_time' cannot be compared",
    ),
    (
        "name like 'a\\\\'",
        "a pattern must not end with an escape character",
    ),
    // Also inside a negation.
    (
        "not (name = 'a' or generation = 'x')",
        "field 'generation' expects an integer",
    ),
];

#[test]
fn errors_of_meaning_have_the_words_of_the_older_service() {
    for (text, message) in MEANINGLESS {
        assert_eq!(error(text), *message, "{text}");
    }
}

#[test]
fn what_the_older_service_refused_or_failed_at_is_understood() {
    for text in [
        "not status.conditions.A = 'True'",
        "status.conditions.A != 'True'",
        "status.conditions.A in ('True', 'False')",
        "status.conditions.A is not null",
        "status.conditions.A like 'T%'",
        "status.conditions.A.last_updated_time between '2026-01-01T00:00:00Z' and '2026-01-02T00:00:00Z'",
        "status.conditions.A.observed_generation < generation",
        "status.conditions.A.observed_generation in [1, 2]",
        "not labels.a = 'b'",
        "labels.a not in ['b']",
        "labels.my-key = 'a'",
        "id in []",
        "generation < 3000000000",
        "updated_time > created_time",
        "created_by = updated_by",
        "spec.a like 'x%'",
    ] {
        assert!(parse(text).is_ok(), "{text}: {}", error(text));
    }
}

#[test]
fn it_is_known_whether_a_search_speaks_of_deletion() {
    for (text, mentions) in [
        ("name = 'a'", false),
        ("deleted_time is null", true),
        (
            "name = 'a' and not (id = 'b' or deleted_time > '2026-01-01')",
            true,
        ),
        ("created_time < deleted_time", true),
        ("deleted_by = 'a'", true),
        ("created_by = deleted_by", true),
        ("updated_by = 'a'", false),
        ("labels.deleted_time = 'a'", false),
        ("name = 'deleted_time'", false),
    ] {
        let filter = parse(text).unwrap();
        assert_eq!(filter.mentions_deletion(), mentions, "{text}");
    }
}

/// Any expression that can be written, whether it makes sense or not.
fn expression() -> impl Strategy<Value = Expression> {
    let number = (0_u32..1_000_000, any::<bool>()).prop_map(|(n, negative)| {
        let number = Number::parse(&n.to_string(), "").expect("a short one");
        if negative { number.negated() } else { number }
    });
    let name = "(name|labels\\.[a-z]([a-z-]{0,3}[a-z])?|spec\\.[a-z_]{1,5}|status\\.conditions\\.[A-Z][a-z]{0,5}|[a-zA-Z_][a-z_./]{0,6}[a-z_])";
    let leaf = prop_oneof![
        name.prop_filter("no keyword", |name: &String| {
            let parsed = parser::parse(name);
            parsed == Ok(Expression::Name(name.clone()))
        })
        .prop_map(Expression::Name),
        "[^\\x00]{0,8}".prop_map(Expression::Text),
        number.prop_map(Expression::Number),
        any::<bool>().prop_map(Expression::Boolean),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Expression::And),
            vec(inner.clone(), 2..4).prop_map(Expression::Or),
            boxed().prop_map(Expression::Not),
            (
                boxed(),
                select(&["=", "!=", "<", "<=", ">", ">="][..]),
                boxed()
            )
                .prop_map(|(left, sign, right)| Expression::Compare(
                    left,
                    sign.parse().unwrap(),
                    right
                )),
            (boxed(), vec(inner.clone(), 0..4))
                .prop_map(|(left, list)| Expression::In(left, Box::new(Expression::List(list)))),
            (boxed(), boxed(), boxed()).prop_map(|(a, b, c)| Expression::Between(a, b, c)),
            (boxed(), boxed(), any::<bool>()).prop_map(|(subject, pattern, ignores_case)| {
                Expression::Like {
                    subject,
                    pattern,
                    ignores_case,
                }
            }),
            boxed().prop_map(Expression::IsNull),
            (select(&UNSUPPORTED[..7]), inner.clone(), inner.clone())
                .prop_map(|((operator, _), a, b)| Expression::Unsupported(operator, vec![a, b])),
            (select(&UNSUPPORTED[7..]), inner)
                .prop_map(|((operator, _), a)| Expression::Unsupported(operator, vec![a])),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_printed_is_read_as_the_same_again(expression in expression()) {
        let text = expression.to_string();
        prop_assert_eq!(parser::parse(&text), Ok(expression), "{}", text);
    }

    #[test]
    fn any_text_keeps_the_laws(text in any::<String>()) {
        prop_assert_eq!(laws::check_search(&text), Ok(()));
    }

    #[test]
    fn any_soup_of_words_keeps_the_laws(words in vec(select(&WORDS[..]), 0..40)) {
        for separator in ["", " "] {
            prop_assert_eq!(laws::check_search(&words.join(separator)), Ok(()));
        }
    }
}

const WORDS: [&str; 50] = [
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "ilike",
    "is",
    "null",
    "true",
    "len",
    "any",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "==",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "~=",
    "~!",
    "+",
    "-",
    "*",
    "/",
    "%",
    "'a'",
    "\"b\"",
    "`",
    "'",
    "\\",
    "name",
    "generation",
    "labels.a-b",
    "spec.a",
    "created_time",
    "status.conditions.A",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "5",
    "5.5e3",
    "7Gi",
    "ä",
    "_",
];

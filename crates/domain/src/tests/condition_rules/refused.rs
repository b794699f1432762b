//! Refusals at the start, with what to change; no such rule can harm the process.

use hyperfleet_expressions::{DEPTH_MAX, SOURCE_BYTES_MAX};

use super::{errors, rule, saying};
use crate::condition_rules::{RuleConfig, TYPE_BYTES_MAX};

/// The error of one expression, after the words for its place.
fn error(expression: &str) -> Option<String> {
    let errors = errors(vec![saying(expression)]);
    assert!(errors.len() <= 1, "{expression}: {errors:?}");
    let start =
        "entity kind \"Cluster\" has the condition \"Zone\", whose output.message.expression ";
    let error = errors.into_iter().next()?;
    let said = error.strip_prefix(start);
    Some(said.unwrap_or_else(|| panic!("{error}")).to_owned())
}

#[test]
fn unsupported_syntax_is_reported_with_a_replacement() {
    for (expression, expected) in [
        ("", "is empty: write an expression"),
        (
            "1 +",
            "is no CEL expression (line:column: what) 1:4: Syntax error",
        ),
        ("'a", "is no CEL expression"),
        ("`a`", "is no CEL expression"),
        (
            "9223372036854775808",
            "is no CEL expression (line:column: what) 1:1: invalid int literal",
        ),
        ("x", "names \"x\", which is not there"),
        ("env.X", "names \"env\""),
        (".resource", "names \".resource\""),
        ("optional", "names \"optional\""),
        ("statuses.map(s, s.adapter) + s", "names \"s\""),
        (
            "[1].map(x, y, z, x)",
            "calls \"map\" in a way that is not known",
        ),
        ("[1].all(1, true)", "is no CEL expression"),
        ("has(1)", "is no CEL expression"),
        (
            "lowerAscii(\"A\")",
            "calls \"lowerAscii\" in a way that is not known",
        ),
        ("\"a,b\".split(\",\")", "calls \"split\""),
        ("[2, 1].sort()", "calls \"sort\""),
        ("math.greatest(1, 2)", "names \"math\""),
        ("cel.bind(x, 1, x)", "names \"cel\""),
        ("base64.encode(b\"x\")", "names \"base64\""),
        (
            "resource.toJson()",
            "calls \"toJson\" in a way that is not known",
        ),
        ("optional.some(1)", "calls \"some\" in a way"),
        ("contains(\"a\", \"b\")", "calls \"contains\" in a way"),
        ("Foo{a: 1}", "makes a value of a type that is not known"),
        (
            "google.protobuf.Duration{seconds: 1}",
            "makes a value of a type",
        ),
        (
            "\"a\".matches(\"(\")",
            "has a pattern that is no regular expression",
        ),
        (
            "\"a\".matches(\"a(?=b)\")",
            "has a pattern that is no regular expression",
        ),
        (
            "\"a\".matches(resource.name)",
            "with a pattern that is not a text in quotes",
        ),
        (
            "\"a\".matches(\"(a{1000}){1000}\")",
            "has a pattern that grows too large",
        ),
        (
            "\"a\".matches(\"\\\\w{900}\")",
            "has a pattern that grows too large",
        ),
    ] {
        let said = error(expression).unwrap_or_else(|| panic!("{expression} passes"));
        assert!(said.contains(expected), "{expression}: {said}");
    }
}

/// The parser is recursive: none of these ends the process.
#[test]
fn nested_expressions_of_any_form_are_read_or_refused() {
    let open = |open: &str, close: &str, inner: &str| {
        let count = (SOURCE_BYTES_MAX - inner.len()) / (open.len() + close.len());
        open.repeat(count) + inner + &close.repeat(count)
    };
    for expression in [
        open("(", ")", "1"),
        open("(", "", ""),
        open("[", "]", ""),
        open("{1:", "}", "1"),
        open("size(", ")", "1"),
        open("", "+1", "1"),
        open("!", "", "true"),
        open("-", "", "1"),
        open("true?1:", "", "2"),
        open("", "&&true", "true"),
        open("", ".a", "resource"),
        open("", "[0]", "resource"),
        open("", " in 1", "1"),
        open("", ".map(x, x + x)", "[1]"),
        open("statuses.all(v, ", ")", "true"),
        open("'", "", ""),
        open("?", "", ""),
        open("\u{0}", "", ""),
        open("é", "", ""),
    ] {
        let said = error(&expression).unwrap_or_default();
        assert!(said.len() < 300, "{expression}: {said}");
    }
}

#[test]
fn the_longest_and_the_deepest_expression_are_accepted() {
    let long = |n: usize| "1".to_owned() + &" ".repeat(n - 1);
    let deep = |n: usize| "resource".to_owned() + &".a".repeat(n - 1);
    for (what, expression, max) in [
        (
            "length",
            &long as &dyn Fn(usize) -> String,
            SOURCE_BYTES_MAX,
        ),
        ("depth", &deep, DEPTH_MAX),
    ] {
        assert_eq!(error(&expression(max)), None, "{what}");
        assert!(error(&expression(max + 1)).is_some(), "{what}");
    }
}

#[test]
fn an_ordinary_rule_is_far_within_the_limits() {
    for expression in [
        "statuses.filter(s, s.conditions.exists(c, c.type == \"Available\" && c.status == \"False\")).map(s, s.adapter)",
        "statuses.filter(s, s.adapter == \"dns\").map(s, s.data.?zone.orValue(\"\"))[0]",
        "\"adapter \" + statuses[0].adapter + \" in \" + resource.spec.region + \" says \" + toJson(statuses[0].data)",
        "statuses.all(s, s.conditions.all(c, resource.spec.nodes.exists(n, n.type == c.type && n.status != c.status)))",
    ] {
        assert_eq!(error(expression), None, "{expression}");
    }
}

#[test]
fn types_are_checked_and_all_errors_are_reported_together() {
    let typed = |kind: &str| RuleConfig {
        kind: kind.to_owned(),
        ..saying("\"m\"")
    };
    for (kind, expected) in [
        ("", "has a condition without a type: set `type`"),
        ("Reconciled", "which the service itself computes"),
        ("LastKnownReconciled", "which the service itself computes"),
        ("a.b", "a type that is not usable"),
        ("1a", "a type that is not usable"),
        ("a=True", "a type that is not usable"),
        ("é", "a type that is not usable"),
    ] {
        let said = errors(vec![typed(kind)]);
        assert!(
            said.len() == 1 && said[0].contains(expected),
            "{kind}: {said:?}"
        );
    }
    assert_eq!(errors(vec![typed(&"T".repeat(TYPE_BYTES_MAX))]), [""; 0]);
    assert_eq!(
        errors(vec![typed(&"T".repeat(TYPE_BYTES_MAX + 1))]).len(),
        1
    );
    assert_eq!(errors(vec![typed("OtherSuccessful")]), [""; 0]);
    let said = errors(vec![typed("Twice"), typed("Twice")]);
    assert!(
        said[0].contains("has the condition \"Twice\" twice: rename"),
        "{said:?}"
    );

    let bad = rule("x", "y", "", "1 +");
    let said = errors(vec![bad, typed("Reconciled")]);
    assert_eq!(said.len(), 5, "{said:?}");
    for (said, part) in
        said.iter()
            .zip(["when", "output.status", "output.reason", "output.message"])
    {
        assert!(
            said.contains(&format!("whose {part}.expression ")),
            "{said}"
        );
    }
}

//! Refusals at the start, with what to change; no such rule can harm the process.

use hyperfleet_expressions::{BRACKETS_MAX, DEPTH_MAX, PATTERN_BYTES_MAX};

use super::{faults, rule, saying};
use crate::domain::condition_rules::{RULES_MAX, RuleConfig, TYPE_BYTES_MAX};

/// The fault of one expression, after the words for its place.
fn fault(expression: &str) -> Option<String> {
    let faults = faults(vec![saying(expression)]);
    assert!(faults.len() <= 1, "{expression}: {faults:?}");
    let start =
        "entity kind \"Cluster\" has the condition \"Zone\", whose output.message.expression ";
    let fault = faults.into_iter().next()?;
    let said = fault.strip_prefix(start);
    Some(said.unwrap_or_else(|| panic!("{fault}")).to_owned())
}

#[test]
fn what_the_language_lacks_is_told_with_what_to_change() {
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
            "[1].map(resource, resource)",
            "calls the variable of a loop \"resource\", which is taken",
        ),
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
        ("toJson()", "calls \"toJson\" with 0 arguments instead of 1"),
        (
            "dig(resource)",
            "calls \"dig\" with 1 arguments instead of 2",
        ),
        ("size(1, 2)", "calls \"size\" with 2 arguments instead of 1"),
        (
            "timestamp(\"\").getHours(1, 2)",
            "calls \"getHours\" with 2 arguments instead of 0 to 1",
        ),
        (
            "optional.of()",
            "calls \"of\" with 0 arguments instead of 1",
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
        let said = fault(expression).unwrap_or_else(|| panic!("{expression} passes"));
        assert!(said.contains(expected), "{expression}: {said}");
    }
    let long = format!("\"a\".matches(\"{}\")", "a".repeat(PATTERN_BYTES_MAX + 1));
    assert!(fault(&long).unwrap().contains("has a pattern of 257 bytes"));
}

#[test]
fn a_hostile_expression_is_refused_and_nothing_else_happens() {
    let doubled = |list: &str, times: usize| list.to_owned() + &".map(x, x + x)".repeat(times);
    let nested = |levels: usize| {
        let open: Vec<_> = (0..levels)
            .map(|n| format!("statuses.all(v{n}, "))
            .collect();
        open.concat() + "true" + &")".repeat(levels)
    };
    for (what, expression) in [
        ("brackets", "(".repeat(5000) + "1" + &")".repeat(5000)),
        (
            "brackets in 2 KB",
            "(".repeat(1000) + "1" + &")".repeat(1000),
        ),
        ("open brackets", "(".repeat(2000)),
        ("lists", "[".repeat(900) + &"]".repeat(900)),
        ("maps", "{1:".repeat(500) + "1" + &"}".repeat(500)),
        ("calls", "size(".repeat(300) + "1" + &")".repeat(300)),
        ("sums", vec!["1"; 20_000].join("+")),
        ("sums in 2 KB", vec!["1"; 1000].join("+")),
        ("negations", "!".repeat(5000) + "true"),
        ("negations in 2 KB", "!".repeat(2000) + "true"),
        ("signs", "-".repeat(2000) + "1"),
        ("choices", "true?1:".repeat(280) + "2"),
        ("conjunctions", vec!["true"; 300].join("&&")),
        ("members", "resource".to_owned() + &".a".repeat(900)),
        ("elements", "resource".to_owned() + &"[0]".repeat(600)),
        ("membership", vec!["1"; 400].join(" in ")),
        ("parts", format!("[{}]", vec!["1"; 900].join(","))),
        ("loops in loops", nested(BRACKETS_MAX + 1)),
        ("loops behind loops", doubled("[1]", DEPTH_MAX)),
        ("unknown names", "x".repeat(2000)),
        ("quotes", "'".repeat(1999)),
        ("nothing readable", "?".repeat(99)),
        ("no text at all", "\u{0}".repeat(100)),
        ("not ASCII", "é".repeat(900)),
    ] {
        let said = fault(&expression).unwrap_or_else(|| panic!("{what} pass"));
        assert!(said.len() < 300, "{what}: {said}");
    }
}

#[test]
fn what_reaches_a_limit_is_within_it() {
    let brackets = |n: usize| "(".repeat(n) + "1" + &")".repeat(n);
    let deep = |n: usize| "resource".to_owned() + &".a".repeat(n - 1);
    for (what, expression, max) in [
        (
            "brackets",
            &brackets as &dyn Fn(usize) -> String,
            BRACKETS_MAX,
        ),
        ("depth", &deep, DEPTH_MAX),
    ] {
        assert_eq!(fault(&expression(max)), None, "{what}");
        assert!(fault(&expression(max + 1)).is_some(), "{what}");
    }
    let pattern = "a".repeat(PATTERN_BYTES_MAX);
    assert_eq!(fault(&format!("\"a\".matches(\"{pattern}\")")), None);
    // Ordinary patterns are far within their limit.
    assert_eq!(
        fault(r#""a".matches("^[\\w.-]+@(\\w+\\.)+\\w{2,8}$")"#),
        None
    );
}

#[test]
fn an_ordinary_rule_is_far_within_the_limits() {
    for expression in [
        "statuses.filter(s, s.conditions.exists(c, c.type == \"Available\" && c.status == \"False\")).map(s, s.adapter)",
        "statuses.filter(s, s.adapter == \"dns\").map(s, s.data.?zone.orValue(\"\"))[0]",
        "\"adapter \" + statuses[0].adapter + \" in \" + resource.spec.region + \" says \" + toJson(statuses[0].data)",
        "statuses.all(s, s.conditions.all(c, resource.spec.nodes.exists(n, n.type == c.type && n.status != c.status)))",
    ] {
        assert_eq!(fault(expression), None, "{expression}");
    }
}

#[test]
fn types_are_checked_and_all_faults_are_told_at_once() {
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
        let said = faults(vec![typed(kind)]);
        assert!(
            said.len() == 1 && said[0].contains(expected),
            "{kind}: {said:?}"
        );
    }
    assert_eq!(faults(vec![typed(&"T".repeat(TYPE_BYTES_MAX))]), [""; 0]);
    assert_eq!(
        faults(vec![typed(&"T".repeat(TYPE_BYTES_MAX + 1))]).len(),
        1
    );
    assert_eq!(faults(vec![typed("OtherSuccessful")]), [""; 0]);
    let said = faults(vec![typed("Twice"), typed("Twice")]);
    assert!(
        said[0].contains("has the condition \"Twice\" twice: rename"),
        "{said:?}"
    );

    let bad = rule("x", "y", "", "1 +");
    let said = faults(vec![bad, typed("Reconciled")]);
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

    let many = |count: usize| (0..count).map(|n| typed(&format!("T{n}"))).collect();
    assert_eq!(faults(many(RULES_MAX)), [""; 0]);
    assert_eq!(
        faults(many(RULES_MAX + 1)),
        ["entity kind \"Cluster\" has 21 conditions; 20 at most"]
    );
}

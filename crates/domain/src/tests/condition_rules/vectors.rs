//! Cases that the older service decides, M01-M25. Where it ends a request with an error (M06, M07, M08, M18),
//! here the condition stays as it was, and the failure is reported.

use super::{Scene, errors, minute, previously, report, rule, saying};
use crate::ConditionStatus::{False, True, Unknown};
use crate::condition_rules::RuleConfig;
use crate::{Condition, ConditionStatus};

/// Status, reason, message and the three times in minutes.
type Row = (ConditionStatus, String, String, [i64; 3]);

fn row(condition: &Condition) -> Row {
    let minutes = |at: chrono::DateTime<chrono::Utc>| (at - minute(0)).num_minutes();
    assert_eq!(condition.observed_generation, 2);
    (
        condition.status,
        condition.reason.clone().expect("a reason, perhaps empty"),
        condition.message.clone().expect("a message, perhaps empty"),
        [
            minutes(condition.created_at),
            minutes(condition.last_updated_at),
            minutes(condition.last_transition_at),
        ],
    )
}

/// The result of a vector: a condition, none, or an error.
enum Gives {
    Says(ConditionStatus, &'static str, &'static str),
    Nothing,
    Error(&'static str),
}

use Gives::{Error, Nothing, Says};

const SEES_DNS: &str = "statuses.exists(s, s.adapter == \"dns\")";

/// `Zone=True`, reason `Ok`, whenever `when` holds.
fn when(when: &str) -> RuleConfig {
    rule(when, "true", "\"Ok\"", "\"m\"")
}

/// Each with its name: a rule and its result.
#[rustfmt::skip]
fn vectors() -> Vec<(&'static str, RuleConfig, Gives)> {
    let m = "\"m\"";
    let ok = "\"Ok\"";
    let neither = "status: it is neither True nor False";
    vec![
        ("M01", when("false"), Nothing),
        ("M02", rule(SEES_DNS, "\"True\"", ok, m), Says(True, "Ok", "m")),
        ("M04", rule("true", "true", ok, m), Says(True, "Ok", "m")),
        ("M05", rule("true", "\"FALSE\"", ok, m), Says(False, "Ok", "m")),
        ("M06", rule("true", "\"Unknown\"", ok, m), Error(neither)),
        ("M07", rule("true", "1", ok, m), Error(neither)),
        ("M08", when("\"yes\""), Error("when: it is neither true nor false")),
        ("M09", rule("true", "true", "null", m), Says(True, "", "m")),
        ("M12", saying("string(statuses[0].observed_generation)"), Says(True, "Ok", "2")),
        ("M13", when("resource.generation > 1 && statuses[0].observed_generation == resource.generation"), Says(True, "Ok", "m")),
        ("M14", saying("statuses[0].data.authToken"), Says(True, "Ok", "***REDACTED***")),
        ("M15", saying("toJson(statuses[0].data)"), Says(True, "Ok", "{\"authToken\":\"***REDACTED***\",\"quota\":{\"remaining\":3},\"zone\":\"z1\"}")),
        ("M16", saying("dig(statuses[0].data, \"quota.remaining\")"), Says(True, "Ok", "3")),
        ("M17", when("dig(statuses, \"0.conditions.7.type\") == null"), Says(True, "Ok", "m")),
        ("M18", saying("resource.spec.missing"), Error("message: there is no \"missing\"")),
        ("M19", saying("resource.spec.?missing.orValue(\"none\")"), Says(True, "Ok", "none")),
        ("M25", saying("\"Admin password: \" + resource.spec.adminPassword"), Says(True, "Ok", "Admin password: ***REDACTED***")),
    ]
}

#[test]
fn each_vector_gives_what_it_says() {
    for (name, rule, gives) in vectors() {
        let said = Scene::default().one(rule);
        let expected = match gives {
            Says(status, reason, message) => {
                let (reason, message) = (reason.to_owned(), message.to_owned());
                Ok(Some((status, reason, message, [10, 10, 10])))
            }
            Nothing => Ok(None),
            Error(error) => Err(error.to_owned()),
        };
        assert_eq!(said.map(|c| c.as_ref().map(row)), expected, "{name}");
    }
}

#[test]
fn m03_an_adapter_that_is_uncertain_of_anything_is_not_seen() {
    let scene = Scene {
        reports: vec![
            report("dns", 2, &[("Available", True), ("Health", Unknown)]),
            report("a", 2, &[("Available", False)]),
        ],
        ..Scene::default()
    };
    assert_eq!(scene.one(rule(SEES_DNS, "true", "\"\"", "\"\"")), Ok(None));
    assert_eq!(
        scene.message("toJson(statuses.map(s, s.adapter))"),
        "[\"a\"]"
    );
}

#[test]
fn m10_a_reason_that_is_too_long_takes_its_condition_away() {
    let mut scene = Scene::default();
    let reason = |bytes: usize| {
        rule(
            "true",
            "\"bad\"",
            &format!("\"{}\"", "r".repeat(bytes)),
            "\"m\"",
        )
    };
    // Checked before the status is, which is bad here.
    assert_eq!(
        scene.one(reason(256)),
        Err("status: it is neither True nor False".to_owned())
    );
    scene.previous = vec![previously(True)];
    let derived = scene.derive(vec![reason(257)]);
    assert_eq!(derived.conditions, []);
    assert!(derived.failures[0].error.contains("longer than 256 bytes"));
    let longest = rule("true", "true", &format!("\"{}\"", "r".repeat(256)), "\"m\"");
    let longest = scene.one(longest).unwrap().unwrap();
    assert_eq!(longest.reason.map(|r| r.len()), Some(256));
}

#[test]
fn m11_a_long_message_is_cut_between_characters() {
    let mut scene = Scene::default();
    for (text, bytes) in [
        ("m".repeat(3000), 2048),
        ("é".repeat(1500), 2048),
        (format!("a{}", "é".repeat(1500)), 2047),
        ("m".repeat(2048), 2048),
        ("m".repeat(2047), 2047),
    ] {
        scene.resource.spec.insert("long".to_owned(), text.into());
        assert_eq!(scene.message("resource.spec.long").len(), bytes);
    }
}

#[test]
fn m20_to_m22_times_move_with_what_is_wanted_and_transitions_with_the_status() {
    let mut scene = Scene {
        previous: vec![previously(True)],
        ..Scene::default()
    };
    let times = |scene: &Scene, status: &str| {
        let said = scene.one(rule("true", status, "\"Ok\"", "\"m\""));
        row(&said.unwrap().unwrap()).3
    };
    assert_eq!(times(&scene, "true"), [5, 10, 5], "M20");
    assert_eq!(times(&scene, "false"), [5, 10, 10], "M21");
    assert_eq!(
        scene.one(rule("false", "true", "\"\"", "\"\"")),
        Ok(None),
        "M22"
    );
    scene.previous.clear();
    assert_eq!(times(&scene, "true"), [10, 10, 10], "M22");
}

#[test]
fn m23_and_m24_are_refused_at_start() {
    assert_eq!(
        errors(vec![rule("env.X == 1", "true", "\"\"", "\"\"")]),
        [
            "entity kind \"Cluster\" has the condition \"Zone\", whose when.expression names \"env\", which is not there: rules see `statuses` and `resource`, and loops their own variable"
        ]
    );
    let reserved = RuleConfig {
        kind: "DnsSuccessful".to_owned(),
        ..saying("\"m\"")
    };
    let said = errors(vec![reserved]);
    assert!(
        said[0].contains("stands for a required adapter"),
        "{said:?}"
    );
}

#[test]
fn a_rule_that_fails_leaves_its_condition_and_all_others_as_they_were() {
    let scene = Scene {
        previous: vec![previously(False)],
        ..Scene::default()
    };
    for (when, status, reason, message) in [
        ("true", "\"Unknown\"", "\"\"", "\"\""),
        ("true", "1", "\"\"", "\"\""),
        ("\"yes\"", "true", "\"\"", "\"\""),
        ("true", "true", "\"\"", "resource.spec.missing"),
        ("true", "true", "resource.missing", "\"\""),
        ("statuses[9].adapter == \"\"", "true", "\"\"", "\"\""),
        ("true", "true", "\"\\u0000\"", "\"\""),
        ("true", "true", "\"\"", "b\"x\""),
    ] {
        let other = |kind: &str| RuleConfig {
            kind: kind.to_owned(),
            ..saying("\"m\"")
        };
        let rules = vec![
            other("After"),
            rule(when, status, reason, message),
            other("Zz"),
        ];
        let derived = scene.derive(rules);
        let kinds: Vec<_> = derived.conditions.iter().map(|c| c.kind.as_str()).collect();
        assert_eq!(kinds, ["After", "Zone", "Zz"], "{when}");
        assert_eq!(derived.conditions[1], previously(False), "{when}");
        assert_eq!(derived.failures.len(), 1, "{when}");
        let failure = &derived.failures[0];
        assert_eq!(
            (failure.kind.as_str(), failure.rule.as_str()),
            ("Cluster", "Zone")
        );
    }
}

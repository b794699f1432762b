//! What searches find.

use hyperfleet_domain::tsl;
use serde_json::json;

use super::{model, names, search, world};
use crate::support::{Random, TestApi};

#[tokio::test]
async fn the_database_finds_what_the_language_means() {
    let api = world::populated().await;
    let all = api.get("/resources?size=100&includeDeleted=true").await;
    let random = &mut Random::seeded(20_261_121);
    let (mut some, mut none, mut every) = (0, 0, 0);
    for _ in 0..600 {
        let text = world::sensible(random, 3);
        let filter = tsl::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let answer = search(&api, "/resources?includeDeleted=true", &text).await;
        assert_eq!(answer.status, 200, "{text}: {}", answer.body);
        let expected: Vec<_> = all
            .items()
            .iter()
            .filter(|resource| model::matches(resource, &filter))
            .map(|resource| resource["id"].as_str().unwrap())
            .collect();
        assert_eq!(answer.column("id"), expected, "{text}");
        assert_eq!(answer.body["total"], expected.len(), "{text}");
        match expected.len() {
            0 => none += 1,
            count if count == all.items().len() => every += 1,
            _ => some += 1,
        }
    }
    // Most of them tell resources apart.
    assert!(
        some > 200 && none > 20 && every > 20,
        "{some} {none} {every}"
    );
}

#[tokio::test]
async fn ids_and_urls_can_be_asked_for() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let pool = api.nodepool(&cluster, "pool").await;
    let resource = api.get(&pool).await.body;
    let text = |name: &str| resource[name].as_str().unwrap().to_owned();
    let owner = |name: &str| {
        resource["owner_references"][name]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (field, value) in [
        ("id", text("id")),
        ("href", text("href")),
        ("owner_id", owner("id")),
        ("owner_href", owner("href")),
        ("owner_kind", owner("kind")),
    ] {
        for (test, pools) in [
            (format!("{field} = '{value}'"), vec!["pool"]),
            (format!("{field} in ('{value}', 'x')"), vec!["pool"]),
            (format!("{field} like '{value}%'"), vec!["pool"]),
            (format!("{field} != '{value}'"), vec![]),
            (format!("{field} = '{}'", value.to_uppercase()), vec![]),
        ] {
            assert_eq!(names(&api, "/nodepools", &test).await, pools, "{test}");
        }
    }
    let found = names(&api, "/resources", "owner_id is null").await;
    assert_eq!(found, ["owner"]);
}

#[tokio::test]
async fn whoever_asks_about_deletion_sees_what_is_being_deleted() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    api.cluster("staying").await;
    api.deleted(&cluster).await;
    for (text, found) in [
        ("name like '%going%'", vec![]),
        ("deleted_time is not null", vec!["going"]),
        ("deleted_time is null", vec!["staying"]),
        ("name = 'going' and deleted_time > created_time", vec![]),
        ("deleted_by is not null", vec!["going"]),
        ("not deleted_by is null", vec!["going"]),
        ("deleted_by is null", vec!["staying"]),
    ] {
        let names = names(&api, "/clusters", text).await;
        // The clock stands still: it was deleted when it was made.
        assert_eq!(names, found, "{text}");
    }
    for text in ["deleted_time is not null", "deleted_by is not null"] {
        let hidden = search(&api, "/clusters?includeDeleted=false", text).await;
        assert_eq!(hidden.body["total"], 0, "{text}");
    }
}

#[tokio::test]
async fn numbers_are_compared_exactly() {
    let api = TestApi::spawn().await;
    for (name, number) in [("below", "9007199254740992"), ("exact", "9007199254740993")] {
        let body = format!(r#"{{"kind":"Cluster","name":"{name}","spec":{{"n":{number}}}}}"#);
        assert_eq!(api.send_bytes("POST", "/clusters", body).await.status, 201);
    }
    let body =
        json!({"kind": "Cluster", "name": "odd", "spec": {"n": "1e999", "long": "1".repeat(500)}});
    assert_eq!(api.post("/clusters", body).await.status, 201);
    for (text, found) in [
        ("spec.n = 9007199254740993", vec!["exact"]),
        ("spec.n < 9007199254740993", vec!["below"]),
        ("spec.n > 1e300", vec!["odd"]),
        ("spec.n = '9007199254740993'", vec!["exact"]),
        ("spec.long > 1", vec![]),
        ("not spec.long > 1", vec![]),
    ] {
        assert_eq!(names(&api, "/clusters", text).await, found, "{text}");
    }
}

#[tokio::test]
async fn search_errors_have_messages_and_positions() {
    let api = TestApi::spawn().await;
    let answer = search(&api, "/clusters", "name = 'a' andd x").await;
    assert_eq!(answer.problem(), (400, "VAL-005"));
    let expected = "failed to parse search query: syntax error at position 11:\nname = 'a' andd x\n           ^";
    assert_eq!(answer.detail(), expected);
    // The words of the older service do not name the field.
    let answer = search(&api, "/clusters", "name = 'a' and nmae = 'b'").await;
    assert_eq!(answer.problem(), (400, "VAL-005"));
    let message = "there is no field nmae";
    let error =
        json!({"constraint": "enum", "field": "search", "message": message, "value": "nmae"});
    assert_eq!(answer.body["errors"], json!([error]));
    // An invalid order takes precedence, and a missing owner over everything.
    let answer = search(&api, "/clusters?order=nmae%20up", "x").await;
    assert!(answer.detail().contains("invalid order format"));
    let nowhere = "/clusters/019b7654-0000-7000-8000-000000000000/nodepools";
    let answer = search(&api, nowhere, "x").await;
    assert_eq!(answer.problem(), (404, "NTF-001"));
    // Nothing is no search.
    let answer = search(&api, "/clusters", "  ").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn wildcards_can_be_meant_as_they_are() {
    let api = TestApi::spawn().await;
    for (name, value) in [("dotted", "a.b"), ("underscored", "a_b")] {
        let body = json!({"kind": "Cluster", "name": name, "spec": {"rate": "50%"}, "labels": {"x": value}});
        assert_eq!(api.post("/clusters", body).await.status, 201);
        api.clock.advance(1);
    }
    for (text, found) in [
        (r"labels.x like 'a_b'", vec!["underscored", "dotted"]),
        // The text is read before the pattern is: one escape makes the other.
        (r"labels.x like 'a\\_b'", vec!["underscored"]),
        (r"labels.x like 'a\_b'", vec!["underscored", "dotted"]),
        (r"spec.rate like '50\\%'", vec!["underscored", "dotted"]),
        (r"spec.rate like '5\\%'", vec![]),
    ] {
        assert_eq!(names(&api, "/clusters", text).await, found, "{text}");
    }
}

#[tokio::test]
async fn no_text_that_is_read_fails_in_the_database() {
    let api = TestApi::spawn().await;
    api.cluster("only").await;
    let random = &mut Random::seeded(3);
    let pieces = [
        "labels.a[",
        "]",
        "\0",
        "\n",
        "'",
        "\\",
        "name",
        " = ",
        " like ",
        "'%'",
        "'\\\\'",
        "spec.a",
        " > ",
        "1e300",
        "9999999999999999999999",
        " in (",
        ")",
        ", ",
        " is null",
        "generation",
        " and ",
        "ä",
        "😀",
        "5Ki",
        "created_time",
        "'0000-01-01T00:00:00+23:59'",
        "'9999-12-31T23:59:59-23:59'",
        "status.conditions.A",
        "'True'",
        " between ",
    ];
    for _ in 0..400 {
        let text: String = (0..=random.below(7))
            .map(|_| random.pick(&pieces))
            .collect();
        let status = search(&api, "/clusters", &text).await.status;
        assert!([200, 400].contains(&status), "{text}");
    }
    for text in [
        "labels.a[\0] is null",
        "labels.a[😀] = 'x'",
        "labels.a[\n] is not null",
    ] {
        let status = search(&api, "/clusters", text).await.status;
        assert!([200, 400].contains(&status), "{text}");
    }
}

#[tokio::test]
async fn long_texts_of_specs_fit_the_same_patterns_as_short_ones() {
    let api = TestApi::spawn().await;
    let texts = [
        "",
        "abc",
        "ABC",
        "a.c",
        "a\nb",
        "a\n",
        "a%b_c",
        r"a\b",
        "(a)[b]{1}^$|+?*",
        "***:x",
        "éö",
        "100%",
    ];
    let patterns = [
        "",
        "abc",
        "a_c",
        "a.c",
        "%b",
        "a%",
        "%a%",
        "a_b",
        "a",
        r"a\\%b\\_c",
        r"a\\\\b",
        "(a)[b]{1}^$|+?*",
        "***:x",
        "é_",
        "%\\\\%",
        "__",
        "%%%c",
        "%_%_%_%",
        "ABC",
        ".*",
        "^abc$",
    ];
    // The length that is compared by other means; both begin alike.
    let (short, long) = ("z".repeat(900), "z".repeat(1_100));
    for (number, text) in texts.iter().enumerate() {
        let spec = json!({"short": format!("{short}{text}"), "long": format!("{long}{text}")});
        let body = json!({"kind": "Cluster", "name": format!("text-{number}"), "spec": spec});
        assert_eq!(api.post("/clusters", body).await.status, 201, "{text}");
    }
    let mut found = 0;
    for pattern in patterns {
        for operator in ["like", "ilike", "not like"] {
            let of = async |field| {
                let query = match operator {
                    "not like" => format!("not spec.{field} like '%z{pattern}'"),
                    other => format!("spec.{field} {other} '%z{pattern}'"),
                };
                let answer = search(&api, "/clusters", &query).await;
                assert_eq!(answer.status, 200, "{query}: {}", answer.body);
                let ids = answer.column("id").into_iter();
                ids.map(ToOwned::to_owned).collect::<Vec<_>>()
            };
            let (short, long) = (of("short").await, of("long").await);
            assert_eq!(short, long, "{operator} {pattern}");
            found += usize::from(!long.is_empty() && long.len() < texts.len());
        }
    }
    assert!(found > patterns.len(), "{found} patterns tell texts apart");
}

#[tokio::test]
async fn no_pattern_is_too_much_for_long_texts() {
    let api = TestApi::spawn().await;
    let spec = json!({"long": "ab".repeat(50_000)});
    let body = json!({"kind": "Cluster", "name": "long", "spec": spec});
    assert_eq!(api.post("/clusters", body).await.status, 201);
    for pattern in [
        "_".repeat(256),
        "%a".repeat(128),
        "%_a".repeat(85),
        "%".repeat(256),
        "é".repeat(128),
        "*".repeat(256),
        format!("%{}", "a_".repeat(127)),
    ] {
        let answer = search(&api, "/clusters", &format!("spec.long like '{pattern}c'")).await;
        let refused = pattern.len() + 1 > 256;
        assert_eq!(answer.status, if refused { 400 } else { 200 }, "{pattern}");
        let answer = search(&api, "/clusters", &format!("spec.long ilike '{pattern}'")).await;
        assert_eq!(answer.status, 200, "{pattern}: {}", answer.body);
    }
}

//! Results of searches.

use serde_json::{Value, json};

use crate::check::{Check, check};
use crate::subject::Subject;
use crate::verdict::Verdict;

const SOURCE: &str = "docs/guides/search.md#tests";
const FIELDS: &str = "docs/guides/search.md#fields";
const MISSING: &str = "docs/guides/search.md#missing-values";
const BEYOND: &str = "docs/guides/search.md#beyond-the-go-hyperfleet-api";

pub(super) fn checks() -> Vec<Check> {
    vec![
        finds(
            "search.equal",
            "= and == find what is equal, != and <> what is not",
            SOURCE,
            &[
                ("name = '{a}'", "a"),
                ("name == '{a}'", "a"),
                ("name != '{a}'", "bc"),
                ("name <> '{a}'", "bc"),
            ],
        ),
        finds(
            "search.compare",
            "<, <=, >, >= compare; the value may come first",
            SOURCE,
            &[
                ("generation >= 2", "b"),
                ("generation < 2", "ac"),
                ("generation <= 2", "abc"),
                ("2 > generation", "ac"),
            ],
        ),
        finds(
            "search.in",
            "in [...] and not in [...] test a list",
            SOURCE,
            &[
                ("name in ['{a}', '{c}']", "ac"),
                ("name not in ['{a}', '{c}']", "b"),
            ],
        ),
        finds(
            "search.between",
            "between includes both ends",
            SOURCE,
            &[
                ("generation between 1 and 2", "abc"),
                ("generation between 2 and 5", "b"),
            ],
        ),
        finds(
            "search.like",
            "like knows % and _, ilike ignores case",
            SOURCE,
            &[
                ("name like '%-a'", "a"),
                ("name like '%-_'", "abc"),
                ("name ilike '%-A'", "a"),
                ("name like '%-A'", ""),
            ],
        ),
        finds(
            "search.and-or",
            "and binds tighter than or; parentheses group",
            SOURCE,
            &[
                ("name = '{a}' or name = '{b}' and generation = 1", "a"),
                ("(name = '{a}' or name = '{b}') and generation = 2", "b"),
            ],
        ),
        finds(
            "search.not",
            "not negates a test or a group",
            SOURCE,
            &[
                ("not name = '{a}'", "bc"),
                ("not (name = '{a}' or name = '{b}')", "c"),
            ],
        ),
        finds(
            "search.keywords",
            "Keywords are read in any case",
            SOURCE,
            &[
                ("name = '{a}' OR name = '{b}'", "ab"),
                ("name LIKE '%-a' And generation = 1", "a"),
            ],
        ),
        finds(
            "search.quotes",
            "Texts stand in single quotes, double quotes or backticks",
            SOURCE,
            &[(r#"name = "{a}""#, "a"), ("name = `{a}`", "a")],
        ),
        finds(
            "search.labels",
            "labels.<key> tests a label",
            FIELDS,
            &[
                ("labels.shard = '1'", "a"),
                ("labels.shard != '1'", "b"),
                ("labels.shard in ['1', '2']", "ab"),
                ("labels.example.com/tier = 'gold'", "a"),
            ],
        ),
        finds(
            "search.spec",
            "spec.<path> tests a value in the spec; numbers compare as numbers",
            FIELDS,
            &[
                ("spec.region = 'eu'", "a"),
                ("spec.nodes.replicas > 3", "b"),
                ("spec.nodes.replicas < 10", "a"),
            ],
        ),
        finds(
            "search.conditions",
            "status.conditions.<Type> tests a condition",
            FIELDS,
            &[
                ("status.conditions.Reconciled = 'False'", "abc"),
                ("status.conditions.Reconciled = 'True'", ""),
                ("status.conditions.Reconciled.observed_generation = 2", "b"),
            ],
        ),
        finds(
            "search.condition-times",
            "Times of conditions compare with RFC 3339 times",
            FIELDS,
            &[
                (
                    "status.conditions.Reconciled.last_updated_time > '2020-01-01T00:00:00Z'",
                    "abc",
                ),
                (
                    "status.conditions.Reconciled.last_transition_time < '2020-01-01T00:00:00Z'",
                    "",
                ),
            ],
        ),
        finds(
            "search.times",
            "Times of resources compare with times and dates",
            FIELDS,
            &[
                ("created_time > '2020-01-01T00:00:00Z'", "abc"),
                ("created_time < 2020-01-01", ""),
            ],
        ),
        finds(
            "search.two-fields",
            "Two fields compare with each other",
            SOURCE,
            &[
                ("created_by = updated_by", "abc"),
                ("created_by != updated_by", ""),
            ],
        ),
        finds(
            "search.missing-label",
            "A missing label matches only is null",
            MISSING,
            &[
                ("labels.shard is null", "c"),
                ("labels.shard = ''", ""),
                ("labels.shard != '3'", "ab"),
            ],
        ),
        finds(
            "search.unknown-label",
            "A label that nobody has is legal and found nowhere",
            MISSING,
            &[("labels.non_existing_label = 'value'", "")],
        ),
        finds(
            "search.missing-spec",
            "A missing value of the spec matches only is null",
            MISSING,
            &[("spec.region is null", "bc"), ("spec.region != 'eu'", "")],
        ),
        check!(
            "search.scope",
            "No search leads out of its list",
            "docs/guides/search.md",
            |api| {
                let (one, two) = (api.cluster().await?, api.cluster().await?);
                let pool = api.nodepool(&two).await?;
                let search = format!("name = '{}' or name != ''", pool.name);
                let list = api
                    .list(&format!("{}/nodepools", one.path), &[("search", &search)])
                    .await?;
                list.has("/total", 0)?;
                let search = format!("name = '{}'", pool.name);
                api.list("/clusters", &[("search", &search)])
                    .await?
                    .has("/total", 0)?;
            }
        ),
        check!(
            "search.injection",
            "Text of a search never becomes a statement",
            "docs/guides/search.md",
            |api| {
                let made = api.cluster().await?;
                for search in [
                    "id = 'x' or '1' = '1",
                    "id = '; drop table clusters; --",
                    "name = 'x'; select 1",
                ] {
                    let list = api.list("/clusters", &[("search", search)]).await?;
                    list.problem(400, "VAL-005")?;
                    let text = String::from_utf8_lossy(&list.bytes).to_lowercase();
                    list.expect(
                        !text.contains("sqlstate") && !text.contains("pq:"),
                        "no words of the database",
                    )?;
                }
                api.get(&made.path).await?.status(200)?;
            }
        ),
        extends(
            "search.in-parentheses",
            "in ('a', 'b') is the same as in ['a', 'b']",
            &[("name in ('{a}', '{c}')", "ac"), ("name in ('{b}')", "b")],
        ),
        extends(
            "search.hyphen-label",
            "Labels with a hyphen can be searched for",
            &[("labels.cost-center = '42'", "c")],
        ),
        extends(
            "search.not-label",
            "Tests of labels can be negated",
            &[
                ("not labels.shard = '1'", "b"),
                ("labels.shard not in ['1']", "b"),
                ("labels.shard is not null", "ab"),
            ],
        ),
        extends(
            "search.not-condition",
            "Tests of conditions can be negated and listed",
            &[
                ("status.conditions.Reconciled != 'True'", "abc"),
                ("not status.conditions.Reconciled = 'False'", ""),
                ("status.conditions.Reconciled in ['True', 'False']", "abc"),
            ],
        ),
        check!("search.in-nothing", "in [] finds nothing", BEYOND, |api| {
            let list = api.list("/clusters", &[("search", "id in []")]).await?;
            list.has("/total", 0)?;
        }),
        check!(
            "search.large-number",
            "Numbers beyond 32 bits compare",
            BEYOND,
            |api| {
                let list = api
                    .list(
                        "/clusters",
                        &[("search", "generation < 3000000000"), ("size", "1")],
                    )
                    .await?;
                list.status(200)?;
            }
        ),
    ]
}

/// Searches over three clusters, and the last letters of the names that they find.
fn finds(
    id: &'static str,
    rule: &'static str,
    source: &'static str,
    searches: &'static [(&'static str, &'static str)],
) -> Check {
    check!(id, rule, source, |api| {
        let group = three(api).await?;
        for (search, letters) in searches {
            expect_matches(api, &group, search, letters).await?;
        }
    })
}

/// Searches that the older service refuses.
fn extends(
    id: &'static str,
    rule: &'static str,
    searches: &'static [(&'static str, &'static str)],
) -> Check {
    check!(id, format!("{rule}"), BEYOND, |api| {
        let group = three(api).await?;
        for (search, letters) in searches {
            expect_matches(api, &group, search, letters).await?;
        }
    })
}

async fn expect_matches(api: &Subject, group: &str, search: &str, letters: &str) -> Verdict {
    let names: Vec<_> = letters
        .chars()
        .map(|letter| format!("{group}-{letter}"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let list = api.search(group, &named(group, search)).await?;
    list.names_are(&names).map(drop)
}

/// A search with `{a}` and the like replaced by names.
fn named(group: &str, search: &str) -> String {
    ["a", "b", "c"]
        .iter()
        .fold(search.to_owned(), |search, letter| {
            search.replace(&format!("{{{letter}}}"), &format!("{group}-{letter}"))
        })
}

/// Three clusters of a group, whose names end in a, b and c; b is at generation 2.
async fn three(api: &Subject) -> Verdict<String> {
    let group = api.name();
    let contents: [(&str, Value, Value); 3] = [
        (
            "a",
            json!({"shard": "1", "example.com/tier": "gold"}),
            json!({"region": "eu", "nodes": {"replicas": 3}}),
        ),
        ("b", json!({"shard": "2"}), json!({})),
        ("c", json!({"cost-center": "42"}), json!({})),
    ];
    for (letter, labels, spec) in contents {
        let mut body = api.body("Cluster");
        body["name"] = json!(format!("{group}-{letter}"));
        body["spec"] = spec;
        body["labels"]["group"] = json!(group);
        for (key, value) in labels.as_object().into_iter().flatten() {
            body["labels"][key] = value.clone();
        }
        let made = api.make("/clusters", body).await?;
        if letter == "b" {
            let spec = json!({"nodes": {"replicas": 10}});
            api.patch(&made.path, json!({"spec": spec}))
                .await?
                .status(200)?;
        }
    }
    Ok(group)
}

//! Lists: pages and orders.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{Answer, TestApi, root};

/// Clusters of these names, each a second younger than the one before.
async fn with_clusters(names: &[&str]) -> TestApi {
    let api = TestApi::spawn().await;
    for name in names {
        api.cluster(name).await;
        api.clock.advance(1);
    }
    api
}

/// So many things without adapters, all made at the same instant.
async fn with_things(count: usize) -> TestApi {
    let api = TestApi::spawn_with(&[root("Thing", "things", &[])]).await;
    for number in 0..count {
        api.make("/things", "Thing", &format!("thing-{number:02}"))
            .await;
    }
    api
}

/// Page, size and total of a list.
fn counts(list: &Answer) -> (i64, i64, i64) {
    let number = |name: &str| list.body[name].as_i64().unwrap();
    (number("page"), number("size"), number("total"))
}

/// The first of two searches may find more than the client asked for, and so may a page.
#[tokio::test]
async fn a_parameter_with_two_values_is_refused() {
    let api = with_things(1).await;
    for query in [
        "size=5&size=6",
        "search=name='a'&search=name='b'",
        "page=1&page=2",
        "includeDeleted=true&includeDeleted=false",
    ] {
        for path in ["/things", "/resources"] {
            let answer = api.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.problem(), (400, "VAL-000"), "{query}");
            assert_eq!(answer.body["errors"][0]["constraint"], "unique", "{query}");
        }
    }
}

#[tokio::test]
async fn a_page_beyond_the_end_is_empty_and_knows_the_total() {
    let api = with_clusters(&["one", "two", "three"]).await;
    let cluster = api.cluster("four").await;
    api.nodepool(&cluster, "workers").await;
    api.report(&cluster, "dns", 1, &[]).await;
    for (path, total) in [
        ("/clusters", 4),
        ("/resources", 5),
        (&format!("{cluster}/nodepools"), 1),
        (&format!("{cluster}/statuses"), 1),
        ("/audit", 5),
    ] {
        for page in [2, 100_000] {
            let list = api.get(&format!("{path}?page={page}&size=20")).await;
            assert_eq!(counts(&list), (page, 0, total), "{path}");
            assert_eq!(list.items().len(), 0, "{path}");
        }
    }
}

#[tokio::test]
async fn lists_are_in_the_order_that_is_asked_for() {
    let api = with_clusters(&["bravo", "charlie", "alpha"]).await;
    let charlie = api.get("/clusters?order=name").await.items()[2].clone();
    let path = format!("/clusters/{}", charlie["id"].as_str().unwrap());
    api.patch(&path, json!({"spec": {"changed": true}})).await;
    let (newest, oldest) = (["alpha", "charlie", "bravo"], ["bravo", "charlie", "alpha"]);
    let (rising, falling) = (["alpha", "bravo", "charlie"], ["charlie", "bravo", "alpha"]);
    for (query, expected) in [
        ("", newest),
        ("order=", newest),
        ("order=%20,%20", newest),
        ("order=desc", newest),
        ("order=asc", oldest),
        ("order=created_time", oldest),
        ("order=created_time%20desc", newest),
        ("order=id", oldest),
        ("order=id%20desc", newest),
        ("order=href%20desc", newest),
        ("order=name", rising),
        ("order=name%20asc", rising),
        ("order=name%20%20desc", falling),
        ("order=name+desc", falling),
        ("order=kind,name%20desc", falling),
        (
            "order=generation%20desc,name",
            ["charlie", "alpha", "bravo"],
        ),
        (
            "order=generation&order=name%20desc",
            ["bravo", "alpha", "charlie"],
        ),
        (
            "order=updated_time%20desc,name",
            ["charlie", "alpha", "bravo"],
        ),
        ("order=created_by,updated_by,name", rising),
        ("order=deleted_time,deleted_by,name", rising),
        ("orderBy=name", rising),
        ("orderBy=name&order=asc", rising),
        ("orderBy=name&order=desc", falling),
        ("orderBy=name%20desc", falling),
        ("orderBy=name%20desc&order=asc", falling),
        (
            "orderBy=generation,name%20asc&order=desc",
            ["charlie", "alpha", "bravo"],
        ),
    ] {
        for list in ["/clusters", "/resources"] {
            let answer = api.get(&format!("{list}?{query}")).await;
            assert_eq!(answer.status, 200, "{query}: {}", answer.body);
            assert_eq!(answer.column("name"), expected, "{list}?{query}");
        }
    }
}

#[tokio::test]
async fn ties_are_broken_by_id_in_the_direction_of_the_last_key() {
    let api = with_things(5).await;
    let ids = |order: &'static str| {
        let api = &api;
        async move {
            let list = api.get(&format!("/things?order={order}")).await;
            list.column("id")
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        }
    };
    let mut rising = ids("id").await;
    assert!(rising.is_sorted());
    assert_eq!(ids("created_time").await, rising);
    assert_eq!(ids("generation%20desc,kind%20asc").await, rising);
    rising.reverse();
    assert_eq!(ids("").await, rising);
    assert_eq!(ids("created_time%20desc").await, rising);
    assert_eq!(ids("kind,generation%20desc").await, rising);
}

#[tokio::test]
async fn pages_of_simultaneous_resources_list_each_once() {
    let api = with_things(10).await;
    for order in ["", "order=created_time", "order=kind%20desc"] {
        let mut seen = Vec::new();
        for page in 1..=4 {
            let list = api
                .get(&format!("/things?size=3&page={page}&{order}"))
                .await;
            assert_eq!(list.body["total"], 10);
            seen.extend(list.column("name").iter().map(ToString::to_string));
        }
        assert_eq!(seen.len(), 10, "{order}");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 10, "{order}");
    }
}

#[tokio::test]
async fn deleted_times_order_those_without_one_last() {
    let api = with_clusters(&["never", "first", "second"]).await;
    let list = api.get("/clusters?order=name").await;
    for index in [0, 2] {
        api.deleted(&format!("/clusters/{}", list.column("id")[index]))
            .await;
        api.clock.advance(1);
    }
    for (order, names) in [
        ("deleted_time", ["first", "second", "never"]),
        ("deleted_time%20desc", ["never", "second", "first"]),
    ] {
        let path = format!("/clusters?includeDeleted=true&order={order}");
        assert_eq!(api.get(&path).await.column("name"), names, "{order}");
    }
}

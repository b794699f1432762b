//! Lists: what is in them.

use hyperfleet_domain::entity_config;
use serde_json::json;

use crate::support::{Answer, TestApi, TestDatabase};

const NOBODY: &str = "019b7654-0000-7000-8000-000000000000";

/// Clusters of these names, each a second younger than the one before.
async fn with_clusters(names: &[&str]) -> TestApi {
    let api = TestApi::spawn().await;
    for name in names {
        api.cluster(name).await;
        api.clock.advance(1);
    }
    api
}

/// Page, size and total of a list.
fn counts(list: &Answer) -> (i64, i64, i64) {
    let number = |name: &str| list.body[name].as_i64().unwrap();
    (number("page"), number("size"), number("total"))
}

#[tokio::test]
async fn a_list_of_nothing_is_a_list() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("empty").await;
    let statuses = format!("{cluster}/statuses");
    for (path, kind) in [
        (format!("{cluster}/nodepools"), "NodePoolList"),
        ("/nodepools".to_owned(), "NodePoolList"),
        (statuses, "AdapterStatusList"),
    ] {
        let list = api.get(&path).await;
        let expected = json!({"kind": kind, "page": 1, "size": 0, "total": 0, "items": []});
        assert_eq!(list.body, expected, "{path}");
    }
}

/// Clients of newer services send parameters that older ones do not know.
#[tokio::test]
async fn no_list_minds_a_parameter_that_it_does_not_know() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("listed").await;
    api.nodepool(&cluster, "pool").await;
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    // Parameters that only lists of resources have are unknown to other lists.
    let of_resources = "search=%29%29&order=nothing&orderBy=-&fields=nothing&includeDeleted=maybe";
    let of_resources = format!("{of_resources}&continue=x&kind=Nothing");
    let of_audit = "actor=nobody&action=drop&since=yesterday&resource_id=x";
    for (list, foreign) in [
        ("/clusters".to_owned(), of_audit),
        ("/nodepools".to_owned(), of_audit),
        (format!("{cluster}/nodepools"), of_audit),
        ("/resources".to_owned(), of_audit),
        (format!("{cluster}/statuses"), &of_resources),
        (format!("{cluster}/statuses"), of_audit),
        (
            "/audit".to_owned(),
            &of_resources.replace("&kind=Nothing", ""),
        ),
    ] {
        let plain = api.get(&list).await;
        assert_eq!(plain.status, 200, "{list}");
        assert_ne!(plain.items().len(), 0, "{list}");
        for query in ["sizee=1", "Size=0&PAGE=x", "%00=%FF&=&&x", foreign] {
            let answer = api.get(&format!("{list}?{query}")).await;
            assert_eq!(answer.body, plain.body, "{list}?{query}");
        }
        // What it knows, it minds, however much else is there.
        let answer = api.get(&format!("{list}?sizee=1&size=0")).await;
        assert_eq!(answer.problem(), (400, "VAL-000"), "{list}");
    }
}

#[tokio::test]
async fn finalizing_resources_are_listed_only_to_who_asks() {
    let api = with_clusters(&["stays", "goes", "stays-too"]).await;
    let list = api.get("/clusters?order=name").await;
    let goes = format!("/clusters/{}", list.column("id")[0]);
    api.nodepool(&goes, "workers").await;
    api.deleted(&goes).await;
    for (path, with, without) in [
        ("/clusters", 3, 2),
        ("/nodepools", 1, 0),
        ("/resources", 4, 2),
        ("/resources?kind=NodePool", 1, 0),
        (&format!("{goes}/nodepools"), 1, 0),
    ] {
        let join = if path.contains('?') { '&' } else { '?' };
        for (query, expected) in [
            ("", without),
            ("includeDeleted=false", without),
            ("includeDeleted=", without),
            ("includeDeleted=true", with),
        ] {
            let list = api.get(&format!("{path}{join}{query}")).await;
            assert_eq!(counts(&list), (1, expected, expected), "{path} {query}");
        }
    }
}

#[tokio::test]
async fn whether_to_include_deleted_is_a_yes_or_no() {
    let api = TestApi::spawn().await;
    for value in ["1", "yes", "TRUE"] {
        let answer = api.get(&format!("/clusters?includeDeleted={value}")).await;
        assert_eq!(answer.problem(), (400, "VAL-000"), "{value}");
        assert_eq!(answer.body["errors"][0]["field"], "includeDeleted");
    }
}

#[tokio::test]
async fn the_setting_lists_finalizing_resources_to_who_does_not_say() {
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let database = TestDatabase::create().await;
    let store = database.store();
    let api = TestApi::spawn_on(registry, database, store, true);
    api.cluster("stays").await;
    let goes = api.cluster("goes").await;
    api.deleted(&goes).await;
    for (query, total) in [
        ("", 2),
        ("includeDeleted=true", 2),
        ("includeDeleted=false", 1),
    ] {
        let list = api.get(&format!("/clusters?{query}")).await;
        assert_eq!(counts(&list), (1, total, total), "{query}");
    }
}

#[tokio::test]
async fn totals_stay_exact_whatever_happens() {
    let api = TestApi::spawn().await;
    let total = |path: &'static str| {
        let api = &api;
        async move { api.get(path).await.body["total"].as_i64().unwrap() }
    };
    let made = (0..12).map(|number| {
        let api = &api;
        async move { api.cluster(&format!("cluster-{number}")).await }
    });
    let clusters = futures_util::future::join_all(made).await;
    assert_eq!(total("/clusters?size=1").await, 12);
    let taken = json!({"kind": "Cluster", "name": "cluster-0", "spec": {}});
    assert_eq!(api.post("/clusters", taken).await.status, 409);
    assert_eq!(total("/clusters").await, 12);
    for cluster in &clusters[..5] {
        api.deleted(cluster).await;
    }
    assert_eq!(total("/clusters").await, 7);
    assert_eq!(total("/clusters?includeDeleted=true").await, 12);
    let all = ["validation", "dns", "pullsecret", "hypershift"];
    api.finalize(&clusters[0], &all, 2).await;
    let forced = format!("{}/force-delete", clusters[1]);
    assert_eq!(api.post(&forced, json!({"reason": "r"})).await.status, 204);
    assert_eq!(total("/clusters").await, 7);
    assert_eq!(total("/clusters?includeDeleted=true").await, 10);
    assert_eq!(total("/resources?includeDeleted=true").await, 10);
    assert_eq!(total("/nodepools?includeDeleted=true").await, 0);
}

#[tokio::test]
async fn the_kind_of_a_list_is_checked_after_its_page() {
    let api = with_clusters(&["only"]).await;
    let list = api.get("/resources?kind=").await;
    assert_eq!(list.column("name"), ["only"]);
    // The kind is checked before the order, and after the page.
    let answer = api.get("/resources?kind=x&order=nmae").await;
    assert_eq!(answer.problem(), (400, "VAL-000"));
    assert_eq!(answer.detail(), "Unknown entity kind: x");
    let answer = api.get("/resources?kind=x&page=0").await;
    assert_eq!(answer.detail(), "Invalid query parameters");
    // No more of it is repeated than a reader needs.
    let answer = api
        .get(&format!("/resources?kind={}", "k".repeat(3000)))
        .await;
    assert!(answer.detail().len() < 200, "{}", answer.detail());
}

#[tokio::test]
async fn the_kind_is_no_parameter_of_other_lists() {
    let api = with_clusters(&["only"]).await;
    let list = api.get("/clusters?kind=NodePool").await;
    assert_eq!(list.column("name"), ["only"]);
}

#[tokio::test]
async fn statuses_are_listed_in_the_order_of_their_first_reports() {
    let api = with_clusters(&[]).await;
    let cluster = api.cluster("reported").await;
    for adapters in [["zulu", "yankee"], ["bravo", "alpha"], ["zulu", "yankee"]] {
        for adapter in adapters {
            assert_eq!(api.report(&cluster, adapter, 1, &[]).await.status, 201);
        }
        api.clock.advance(1);
    }
    let list = api.get(&format!("{cluster}/statuses")).await;
    assert_eq!(list.column("adapter"), ["yankee", "zulu", "alpha", "bravo"]);
    assert_eq!(counts(&list), (1, 4, 4));
}

#[tokio::test]
async fn statuses_need_their_resource() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    for (path, detail) in [
        (
            format!("/clusters/{NOBODY}/statuses"),
            format!("Cluster with id='{NOBODY}' not found"),
        ),
        (
            format!("/clusters/{NOBODY}/nodepools/{NOBODY}/statuses"),
            format!("Cluster with id='{NOBODY}' not found"),
        ),
        (
            format!("{cluster}/nodepools/{NOBODY}/statuses"),
            format!("NodePool with id='{NOBODY}' not found"),
        ),
        (
            format!("/resources/{NOBODY}/statuses"),
            format!("Resource with id='{NOBODY}' not found"),
        ),
    ] {
        let answer = api.get(&path).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{path}");
        assert_eq!(answer.detail(), detail, "{path}");
    }
}

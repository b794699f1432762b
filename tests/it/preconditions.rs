//! Tags of resources, and requests that depend on them.

use std::collections::HashMap;

use futures_util::future::join_all;
use hyperfleet_domain::entity_config::{self, EntityConfig};
use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, linked, root};

const NONE: Value = Value::Null;

async fn if_match(api: &TestApi, tag: &str, method: &str, path: &str, body: Value) -> Answer {
    api.send_with(&[("if-match", tag)], method, path, &body)
        .await
}

async fn if_none_match(api: &TestApi, tag: &str, path: &str) -> Answer {
    api.send_with(&[("if-none-match", tag)], "GET", path, &NONE)
        .await
}

#[track_caller]
fn assert_refused(answer: &Answer, tag: &str) {
    assert_eq!(answer.problem(), (412, "CNF-002"), "{}", answer.body);
    assert_eq!(answer.body["title"], "Version Conflict");
    assert_eq!(answer.header("etag"), Some(tag));
}

#[tokio::test]
async fn every_answer_with_a_resource_has_its_tag() {
    let mut kinds = entity_config::built_in();
    kinds.push(root("WifConfig", "wifconfigs", &[]));
    let api = TestApi::spawn_with(&kinds).await;
    let made = api.made("/clusters", "Cluster", "abc").await;
    let cluster = format!("/clusters/{}", made.id());
    let any = format!("/resources/{}", made.id());
    let has = async |answer: &Answer, tag: &str| {
        assert_eq!(answer.header("etag"), Some(tag), "{}", answer.body);
        for path in [&cluster, &any, &format!("{cluster}?fields=name")] {
            assert_eq!(api.get(path).await.header("etag"), Some(tag), "{path}");
        }
    };
    has(&made, "\"g1.r1\"").await;
    let change = json!({"spec": {"a": 1}});
    has(&api.patch(&cluster, change.clone()).await, "\"g2.r2\"").await;
    has(&api.patch(&cluster, change).await, "\"g2.r2\"").await;
    assert_eq!(api.report(&cluster, "dns", 2, &[]).await.status, 201);
    has(&api.get(&cluster).await, "\"g2.r3\"").await;
    let references = json!({"references": {}});
    has(&api.patch(&cluster, references).await, "\"g3.r4\"").await;
    let pool = api.nodepool(&cluster, "pool").await;
    assert_eq!(api.get(&pool).await.header("etag"), Some("\"g1.r1\""));
    has(&api.delete(&cluster).await, "\"g4.r5\"").await;
    has(&api.delete(&cluster).await, "\"g4.r5\"").await;
    assert_eq!(api.get(&pool).await.header("etag"), Some("\"g2.r2\""));
    let alone = api.cluster("alone").await;
    let deleted = api.delete(&alone).await;
    assert_eq!(deleted.header("etag"), Some("\"g2.r2\""));
    assert_eq!(api.get(&alone).await.header("etag"), Some("\"g2.r2\""));
    // What is gone has no state.
    let wif = api.make("/wifconfigs", "WifConfig", "wif").await;
    let gone = api.deleted(&wif).await;
    assert_eq!(gone.header("etag"), None);
    for path in [
        "/clusters",
        &format!("{cluster}/statuses"),
        "/audit",
        "/clusters/none",
    ] {
        assert_eq!(api.get(path).await.header("etag"), None, "{path}");
    }
}

fn family() -> Vec<EntityConfig> {
    vec![
        root("Owner", "owners", &["dns"]),
        child("Owner", "cascade", root("Part", "parts", &["dns"])),
        linked(&[("uses", "Owner", 0, 9)], root("User", "users", &["dns"])),
    ]
}

/// Each look at each resource after each change: where the tag is the same, so is the body.
#[tokio::test]
async fn a_body_changes_only_with_its_tag() {
    let api = TestApi::spawn_with(&family()).await;
    let mut seen: HashMap<(String, String), Value> = HashMap::new();
    let owner = api.make("/owners", "Owner", "owner").await;
    let part = api.make(&format!("{owner}/parts"), "Part", "part").await;
    let user = api.make("/users", "User", "user").await;
    let id = owner.rsplit('/').next().unwrap();
    let link = json!({"references": {"uses": [{"kind": "Owner", "id": id}]}});
    let finalized = [("Finalized", "True")];
    for step in 0..12 {
        api.clock.advance(1);
        let answer = match step {
            0 => api.report(&owner, "dns", 1, &[]).await,
            1 => {
                api.report(&owner, "dns", 1, &[("Available", "False")])
                    .await
            }
            2 => api.patch(&owner, json!({"labels": {"a": "b"}})).await,
            3 | 7 => api.patch(&user, link.clone()).await,
            4 => api.patch(&user, json!({"references": {}})).await,
            5 => api.report(&part, "dns", 1, &[]).await,
            6 => {
                let sql = "UPDATE resources SET tenancy = '{\"org\": \"acme\"}'";
                let mut direct = api.database.connect().await;
                sqlx::raw_sql(sql).execute(&mut direct).await.unwrap();
                api.get(&user).await
            }
            8 => api.delete(&user).await,
            9 => api.report(&user, "dns", 5, &finalized).await,
            10 => api.delete(&owner).await,
            _ => api.report(&part, "dns", 2, &finalized).await,
        };
        assert!(
            (200..300).contains(&answer.status),
            "{step}: {}",
            answer.body
        );
        for path in [&owner, &part, &user] {
            let found = api.get(path).await;
            let Some(tag) = found.header("etag") else {
                assert_eq!(found.status, 404);
                continue;
            };
            let tag = tag.to_owned();
            let before = seen.insert((path.clone(), tag.clone()), found.body.clone());
            assert!(
                before.is_none_or(|body| body == found.body),
                "{step} {path} {tag}"
            );
        }
    }
    assert!(seen.len() > 12, "{}", seen.len());
}

#[tokio::test]
async fn a_client_that_has_the_resource_gets_304() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    for tag in [
        "\"g1.r2\"",
        "W/\"g1.r2\"",
        "\"g1\"",
        "\"x\", \"g1.r2\"",
        "*",
    ] {
        for method in ["GET", "HEAD"] {
            let headers = [("if-none-match", tag)];
            let answer = api.send_with(&headers, method, &cluster, &NONE).await;
            assert_eq!((answer.status, answer.bytes.len()), (304, 0), "{tag}");
            assert_eq!(answer.header("etag"), Some("\"g1.r2\""), "{tag}");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert_eq!(answer.header("vary"), Some("Authorization"));
        }
    }
    for tag in ["\"g1.r1\"", "\"g2\"", "\"r2\"", "\"\""] {
        let answer = if_none_match(&api, tag, &cluster).await;
        assert_eq!(
            (answer.status, answer.body["name"].as_str()),
            (200, Some("abc")),
            "{tag}"
        );
    }
    let missing = if_none_match(&api, "*", "/clusters/01890000-0000-7000-8000-000000000000").await;
    assert_eq!(missing.status, 404);
    let unknown = if_none_match(&api, "*", &format!("{cluster}?fields=none")).await;
    assert_eq!(unknown.status, 400);
    assert_eq!(
        if_match(&api, "\"g1\"", "GET", &cluster, NONE).await.status,
        200
    );
    assert_refused(
        &if_match(&api, "\"g2\"", "GET", &cluster, NONE).await,
        "\"g1.r2\"",
    );
}

/// Other bytes have another strong tag, which names the same state.
#[tokio::test]
async fn compressed_answers_have_tags_of_their_own() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let gzip = ("accept-encoding", "gzip");
    let packed = api.send_with(&[gzip], "GET", &cluster, &NONE).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let tag = packed.header("etag").unwrap();
    assert_eq!(tag, "\"g1.r1-gzip\"");
    let headers = [gzip, ("if-none-match", tag)];
    let known = api.send_with(&headers, "GET", &cluster, &NONE).await;
    assert_eq!((known.status, known.header("etag")), (304, Some(tag)));
    let body = json!({"spec": {"a": 1}});
    assert_eq!(
        if_match(&api, tag, "PATCH", &cluster, body).await.status,
        200
    );
}

#[tokio::test]
async fn a_change_that_demands_another_state_changes_nothing() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let pool = api.nodepool(&cluster, "pool").await;
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    let forced = format!("{cluster}/force-delete");
    let reason = json!({"reason": "x"});
    let patches = [
        json!({"spec": {"a": 1}}),
        json!({"spec": {}}),
        json!({"references": {}}),
    ];
    for tag in ["\"g1.r1\"", "\"g2\"", "W/\"g1.r2\"", "W/\"g1\""] {
        for body in &patches {
            let refused = if_match(&api, tag, "PATCH", &cluster, body.clone()).await;
            assert_refused(&refused, "\"g1.r2\"");
        }
        assert_refused(
            &if_match(&api, tag, "DELETE", &cluster, NONE).await,
            "\"g1.r2\"",
        );
        let refused = if_match(&api, tag, "POST", &forced, reason.clone()).await;
        assert_refused(&refused, "\"g1.r2\"");
    }
    let refused = if_match(&api, "\"g1.r2\"", "DELETE", &pool, NONE).await;
    assert_refused(&refused, "\"g1.r1\"");
    let any = [("if-none-match", "*")];
    let refused = api.send_with(&any, "PATCH", &cluster, &patches[0]).await;
    assert_refused(&refused, "\"g1.r2\"");
    let detail = refused.detail();
    let excluded = "is in a state that If-None-Match excludes: \"g1.r2\"";
    assert!(detail.ends_with(excluded), "{detail}");
    assert_eq!(api.count("SELECT count(*) FROM audit_entries").await, 2);
    // What is not there has no state to demand.
    let none = "/clusters/01890000-0000-7000-8000-000000000000";
    for (method, body) in [("PATCH", patches[0].clone()), ("DELETE", NONE)] {
        assert_eq!(if_match(&api, "*", method, none, body).await.status, 404);
    }
    // The declared state of generation 1, although an adapter has reported since.
    let done = if_match(&api, "\"g1\"", "PATCH", &cluster, patches[0].clone()).await;
    assert_eq!((done.status, done.header("etag")), (200, Some("\"g2.r3\"")));
    let linked = if_match(&api, "\"g2.r3\"", "PATCH", &cluster, patches[2].clone()).await;
    assert_eq!(
        (linked.status, linked.header("etag")),
        (200, Some("\"g3.r4\""))
    );
    let deleted = if_match(&api, "\"g3\", \"g9\"", "DELETE", &cluster, NONE).await;
    assert_eq!(
        (deleted.status, deleted.header("etag")),
        (202, Some("\"g4.r5\""))
    );
    assert_refused(
        &if_match(&api, "\"g3\"", "PATCH", &cluster, patches[0].clone()).await,
        "\"g4.r5\"",
    );
    let marked = if_match(&api, "\"g4\"", "PATCH", &cluster, patches[0].clone()).await;
    assert_eq!(marked.problem(), (409, "CNF-003"));
    assert_eq!(
        if_match(&api, "\"g4.r5\"", "POST", &forced, reason)
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn headers_that_cannot_be_read_are_named() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let body = json!({"spec": {"a": 1}});
    for (header, field) in [("if-match", "If-Match"), ("if-none-match", "If-None-Match")] {
        for method in ["GET", "PATCH", "DELETE"] {
            let body = if method == "PATCH" { &body } else { &NONE };
            let answer = api
                .send_with(&[(header, "g1")], method, &cluster, body)
                .await;
            assert_eq!(answer.problem(), (400, "VAL-000"), "{}", answer.body);
            assert_eq!(answer.body["errors"][0]["field"], field);
        }
    }
    assert_eq!(api.get(&cluster).await.header("etag"), Some("\"g1.r1\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_changes_that_demand_the_same_state_one_is_made() {
    let api = TestApi::spawn().await;
    for (name, bodies) in [
        ("specs", vec![json!({"spec": {"n": 0}}); 12]),
        ("links", vec![json!({"references": {}}); 12]),
    ] {
        let cluster = api.cluster(name).await;
        for round in 1..=5 {
            let tag = format!("\"g{round}\"");
            let requests = bodies.iter().enumerate().map(|(number, body)| {
                let mut body = body.clone();
                if body["spec"].is_object() {
                    body["spec"]["n"] = json!(round * 100 + number);
                }
                if_match(&api, &tag, "PATCH", &cluster, body)
            });
            let answers = join_all(requests).await;
            let made = answers.iter().filter(|answer| answer.status == 200).count();
            assert_eq!(made, 1, "{name} {round}");
            let refused = answers.iter().filter(|answer| answer.status != 200);
            for refused in refused {
                assert_refused(refused, &format!("\"g{0}.r{0}\"", round + 1));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_and_a_deletion_of_one_etag_exclude_each_other() {
    let api = TestApi::spawn().await;
    for round in 0..20 {
        let cluster = api.cluster(&format!("cluster-{round}")).await;
        if round % 2 == 0 {
            api.nodepool(&cluster, "pool").await;
        }
        let patch = if_match(&api, "\"g1\"", "PATCH", &cluster, json!({"spec": {"a": 1}}));
        let delete = if_match(&api, "\"g1\"", "DELETE", &cluster, NONE);
        let (patched, deleted) = tokio::join!(patch, delete);
        let made = [patched.status == 200, deleted.status == 202];
        assert_eq!(
            made.iter().filter(|is_made| **is_made).count(),
            1,
            "{round}"
        );
        let refused = if made[0] { deleted } else { patched };
        assert_refused(&refused, "\"g2.r2\"");
    }
}

/// An operator's UPDATE changes what a response shows, so it changes the tag.
#[tokio::test]
async fn a_change_by_hand_has_another_tag() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let mut connection = api.database.connect().await;
    let tag = |answer: &Answer| answer.header("etag").unwrap().to_owned();
    let mut before = tag(&api.get(&cluster).await);
    for sql in [
        "UPDATE resources SET labels = '{\"by\": \"hand\"}'",
        "UPDATE resources SET spec = '{\"by\": \"hand\"}'",
        "UPDATE resources SET tenancy = '{\"org\": \"acme\"}'",
        "UPDATE resources SET generation = generation + 10, revision = revision + 1",
    ] {
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        let headers = [("if-none-match", before.as_str())];
        let found = api.send_with(&headers, "GET", &cluster, &NONE).await;
        assert_eq!(found.status, 200, "{sql}");
        before = tag(&found);
    }
    let changed = if_match(&api, &before, "PATCH", &cluster, json!({"spec": {}})).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
}

/// An adapter may demand the state that its report is about.
#[tokio::test]
async fn a_report_is_stored_if_its_preconditions_hold() {
    let api = TestApi::spawn_with(&[root("Plain", "plains", &["dns"])]).await;
    let plain = api.make("/plains", "Plain", "p").await;
    let path = format!("{plain}/statuses");
    let report = |generation: i32, finalized: &str| {
        let types = ["Available", "Applied", "Health"].map(|kind| (kind, "True"));
        let conditions = types.into_iter().chain([("Finalized", finalized)]);
        let conditions = conditions.map(|(kind, status)| json!({"type": kind, "status": status}));
        json!({
            "adapter": "dns",
            "observed_generation": generation,
            "observed_time": api.clock.now(),
            "conditions": conditions.collect::<Vec<_>>(),
        })
    };
    for (header, value, status) in [
        ("if-match", "\"g2\"", 412),
        ("if-match", "g1", 400),
        ("if-none-match", "\"g1\"", 412),
        ("if-match", "\"g1\"", 201),
    ] {
        for path in [format!("{path}?dryRun=true"), path.clone()] {
            let body = report(1, "False");
            let answer = api.send_with(&[(header, value)], "PUT", &path, &body).await;
            assert_eq!(answer.status, status, "{header}: {value}: {}", answer.body);
        }
        let stored = api.get(&path).await.items().len();
        assert_eq!(stored, usize::from(status == 201), "{header}: {value}");
    }
    api.deleted(&plain).await;
    for (value, status) in [("\"g1\"", 412), ("\"g2\"", 201)] {
        let body = report(2, "True");
        let answer = api
            .send_with(&[("if-match", value)], "PUT", &path, &body)
            .await;
        assert_eq!(answer.status, status, "{value}: {}", answer.body);
    }
    assert_eq!(api.get(&plain).await.status, 404);
}

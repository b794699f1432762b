//! Single requests: what their dry runs answer.

use hyperfleet_domain::entity_config;
use hyperfleet_server_kit::http::{Admission, Gate, Limits};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{NONE, Rehearsal, dry_run, effects};
use crate::support::{ACME, BETA, SYSTEM, TestApi, Walls, child, linked, root, until};

fn effect(action: &str, name: &str) -> (String, String) {
    (action.to_owned(), name.to_owned())
}

fn named(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "name": name, "spec": {}})
}

#[tokio::test]
async fn every_write_has_a_dry_run_with_the_same_result() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let adapters = json!(entity_config::built_in()[0].required_adapters);
    let (dry, real) = rehearsal
        .send("POST", "/clusters", named("Cluster", "one"))
        .await;
    let said = &dry.body["dry_run"];
    assert_eq!((dry.status, &said["status"]), (201, &json!(201)));
    assert_eq!(
        said["effects"],
        json!([{
            "action": "create", "adapters": adapters, "frees_name": false, "generation_after": 1, "kind": "Cluster",
            "name": "one", "resource_id": dry.id(),
        }])
    );
    let path = format!("/clusters/{}", real.id());
    rehearsal
        .send(
            "POST",
            &format!("{path}/nodepools"),
            named("NodePool", "pool"),
        )
        .await;
    let (dry, _) = rehearsal
        .send("PATCH", &path, json!({"spec": {"a": 1}}))
        .await;
    assert_eq!(dry.body["generation"], 2);
    assert_eq!(effects(&dry), [effect("patch", "one")]);
    let (dry, _) = rehearsal
        .send("PATCH", &path, json!({"spec": {"a": 1}}))
        .await;
    assert_eq!(effects(&dry), []);
    let report = json!({
        "adapter": adapters[0], "observed_generation": 2, "observed_time": rehearsal.api.clock.now(),
        "conditions": [{"type": "Available", "status": "True"}, {"type": "Applied", "status": "True"},
                       {"type": "Health", "status": "True"}],
    });
    let statuses = format!("{path}/statuses");
    let (dry, _) = rehearsal.send("PUT", &statuses, report.clone()).await;
    assert_eq!((dry.status, effects(&dry)), (201, vec![]));
    assert_eq!(dry.body["dry_run"]["conditions"][0]["status_after"], "True");
    // Repeated, and of a generation to come.
    let (dry, _) = rehearsal.send("PUT", &statuses, report.clone()).await;
    assert_eq!(
        (dry.status, &dry.body["dry_run"]["conditions"]),
        (201, &json!([]))
    );
    let mut early = report;
    early["observed_generation"] = json!(9);
    let (dry, real) = rehearsal.send("PUT", &statuses, early).await;
    assert_eq!((dry.status, real.status), (200, 204));
    assert_eq!(
        dry.body,
        json!({"dry_run": {
            "conditions": [], "conditions_total": 0, "effects": [], "effects_total": 0, "status": 204,
        }})
    );
    let forced = format!("{path}/force-delete");
    let reason = json!({"reason": "x"});
    assert_eq!(
        rehearsal
            .send("POST", &forced, reason.clone())
            .await
            .0
            .status,
        409
    );
    let (dry, _) = rehearsal.send("DELETE", &path, NONE).await;
    assert_eq!(dry.status, 202);
    assert_eq!(
        effects(&dry),
        [effect("delete", "one"), effect("delete", "pool")]
    );
    let (dry, real) = rehearsal.send("POST", &forced, reason).await;
    assert_eq!((dry.status, real.status), (200, 204));
    assert_eq!(
        effects(&dry),
        [
            effect("force_delete", "pool"),
            effect("force_delete", "one")
        ]
    );
    assert_eq!(rehearsal.send("DELETE", &path, NONE).await.0.status, 404);
    rehearsal.assert_sound().await;
}

#[tokio::test]
async fn the_last_child_takes_its_waiting_owners_with_it() {
    let kinds = vec![
        root("Cluster", "clusters", &["dns"]),
        child("Cluster", "cascade", root("NodePool", "nodepools", &[])),
        child("NodePool", "cascade", root("File", "files", &["map"])),
    ];
    let rehearsal = Rehearsal::of(kinds).await;
    let api = &rehearsal.api;
    let cluster = api.cluster("top").await;
    let pool = api.nodepool(&cluster, "middle").await;
    let flat = pool.strip_prefix(&cluster).unwrap();
    let file = api.make(&format!("{flat}/files"), "File", "bottom").await;
    let (dry, _) = rehearsal.send("DELETE", &cluster, NONE).await;
    let deleted = ["top", "middle", "bottom"].map(|name| effect("delete", name));
    assert_eq!(effects(&dry), deleted);
    api.finalize(&cluster, &["dns"], 2).await;
    let report = |status: &str| {
        json!({
            "adapter": "map", "observed_generation": 2, "observed_time": api.clock.now(),
            "conditions": [{"type": "Available", "status": status}, {"type": "Applied", "status": "True"},
                           {"type": "Health", "status": "True"}, {"type": "Finalized", "status": "True"}],
        })
    };
    let path = file.replace(flat, "");
    let (dry, _) = rehearsal
        .send("PUT", &format!("{path}/statuses"), report("True"))
        .await;
    let removed = ["bottom", "middle", "top"].map(|name| effect("hard_delete", name));
    assert_eq!(effects(&dry), removed);
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn references_hold_a_dry_run_back_like_the_request() {
    let app = linked(&[("site", "Site", 1, 1)], root("App", "apps", &["deploy"]));
    let rehearsal = Rehearsal::of(vec![root("Site", "sites", &[]), app]).await;
    let api = &rehearsal.api;
    let site = api.made("/sites", "Site", "here").await.id().to_owned();
    let mut app = named("App", "app");
    assert_eq!(
        rehearsal.send("POST", "/apps", app.clone()).await.0.status,
        400
    );
    app["references"] = json!({"site": [{"kind": "Site", "id": site}]});
    let (dry, real) = rehearsal.send("POST", "/apps", app.clone()).await;
    assert_eq!(dry.body["references"], real.body["references"]);
    let path = format!("/apps/{}", real.id());
    let (dry, _) = rehearsal
        .send("DELETE", &format!("/sites/{site}"), NONE)
        .await;
    assert!(
        dry.detail().contains("referenced by App \"app\""),
        "{}",
        dry.body
    );
    let (dry, _) = rehearsal
        .send("PATCH", &path, json!({"references": app["references"]}))
        .await;
    assert_eq!(effects(&dry), [effect("patch", "app")]);
    assert_eq!(rehearsal.send("DELETE", &path, NONE).await.0.status, 202);
    // It is free once its source is finalizing, and gone at once.
    let (dry, _) = rehearsal
        .send("DELETE", &format!("/sites/{site}"), NONE)
        .await;
    assert_eq!(
        effects(&dry),
        [effect("delete", "here"), effect("hard_delete", "here")]
    );
}

#[tokio::test]
async fn preconditions_count_and_a_dry_run_has_no_tag() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let path = rehearsal.api.cluster("one").await;
    let body = json!({"spec": {"a": 1}});
    for (tag, status) in [
        ("\"g9\"", 412),
        ("nonsense", 400),
        ("\"g1\"", 200),
        ("\"g1\"", 412),
    ] {
        let sent = (&[("if-match", tag)][..], "PATCH", &*path, &body);
        let (dry, _) = rehearsal.both(&rehearsal.api, sent).await;
        assert_eq!(dry.status, status, "{tag}: {}", dry.body);
    }
}

#[tokio::test]
async fn a_key_is_judged_and_not_claimed() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let api = &rehearsal.api;
    let headers = [("idempotency-key", "a")];
    let body = named("Cluster", "one");
    let sent = (&headers[..], "POST", "/clusters?x=y", &body);
    for _ in 0..2 {
        let dry = dry_run(api, sent).await;
        assert_eq!(
            (dry.status, dry.header("idempotency-replayed")),
            (201, None)
        );
    }
    assert_eq!(api.count("SELECT count(*) FROM idempotency_keys").await, 0);
    let (_, real) = rehearsal.both(api, sent).await;
    // The real request would get its first answer again, and do nothing.
    let (dry, again) = rehearsal.both(api, sent).await;
    for answer in [&dry, &again] {
        assert_eq!(answer.header("idempotency-replayed"), Some("true"));
        assert_eq!(answer.id(), real.id());
    }
    assert_eq!(effects(&dry), []);
    let other = named("Cluster", "two");
    let (dry, _) = rehearsal
        .both(api, (&headers, "POST", "/clusters", &other))
        .await;
    assert_eq!(dry.problem(), (422, "VAL-009"));
    let wrong = [("idempotency-key", "a b")];
    let (dry, _) = rehearsal
        .both(api, (&wrong, "POST", "/clusters", &other))
        .await;
    assert_eq!(dry.problem(), (400, "VAL-000"));
}

#[tokio::test]
async fn any_other_spelling_is_refused_and_changes_nothing() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let api = &rehearsal.api;
    let path = api.cluster("one").await;
    let pool = api.nodepool(&path, "pool").await;
    let before = rehearsal.tables().await;
    let requests = [
        ("POST", "/clusters".to_owned(), named("Cluster", "two")),
        (
            "POST",
            format!("{path}/nodepools"),
            named("NodePool", "two"),
        ),
        ("PATCH", path.clone(), json!({"spec": {"a": 1}})),
        ("DELETE", pool.clone(), NONE),
        (
            "POST",
            format!("{pool}/force-delete"),
            json!({"reason": "x"}),
        ),
        ("PUT", format!("{pool}/statuses"), json!({})),
    ];
    for (method, path, body) in &requests {
        for query in [
            "dryRun=All",
            "dryRun=false",
            "dryRun",
            "dryRun=true&dryRun=",
            "dryrun=true",
            "dry_run=true",
        ] {
            let answer = api
                .send(method, &format!("{path}?{query}"), body.clone())
                .await;
            assert_eq!(
                answer.problem(),
                (400, "VAL-000"),
                "{query}: {}",
                answer.body
            );
            let field = answer.body["errors"][0]["field"].as_str().unwrap();
            assert!(query.contains(field), "{query}: {field}");
        }
    }
    assert_eq!(rehearsal.tables().await, before);
    // Reads ignore it, as any parameter that they do not know.
    let read = api.get(&format!("{path}?dryRun=All")).await;
    assert_eq!((read.status, read.body.get("dry_run")), (200, None));
}

/// Resources of other tenants change with their owner. They are not named.
#[tokio::test]
async fn other_tenants_are_not_named() {
    let kinds = entity_config::built_in();
    let api = TestApi::spawn_for(&kinds, Walls::Up).await;
    let acme = api.speaking(ACME);
    let cluster = acme.cluster("one").await;
    let own = acme.nodepool(&cluster, "own").await;
    let other = acme.nodepool(&cluster, "other").await;
    let give = "UPDATE resources SET tenancy = '{\"org\": \"beta\"}' WHERE name = 'other' RETURNING 1::bigint";
    assert_eq!(api.count(give).await, 1);
    let id = other.rsplit('/').next().unwrap();
    let rehearsal = Rehearsal::with(api, kinds).await;
    let before = rehearsal.tables().await;
    for (method, path, body) in [
        ("DELETE", cluster.clone(), NONE),
        (
            "POST",
            format!("{cluster}/force-delete"),
            json!({"reason": "x"}),
        ),
    ] {
        let sent = (&[][..], method, &*path, &body);
        let dry = dry_run(&acme, sent).await;
        if method == "DELETE" {
            assert_eq!(
                effects(&dry),
                [effect("delete", "one"), effect("delete", "own")]
            );
            assert_eq!(rehearsal.tables().await, before);
            assert_eq!(acme.delete(&cluster).await.status, 202);
        } else {
            let forced = [effect("force_delete", "own"), effect("force_delete", "one")];
            assert_eq!(effects(&dry), forced);
        }
        assert_eq!(dry.body["dry_run"]["hidden_effects"], true, "{}", dry.body);
        assert!(!dry.body.to_string().contains(id), "{}", dry.body);
    }
    // What a caller may not do or see it cannot try either.
    let beta = rehearsal.api.speaking(BETA);
    let system = rehearsal.api.speaking(SYSTEM);
    for (caller, status) in [(&beta, 404), (&system, 403), (&rehearsal.api, 403)] {
        let sent = (&[][..], "DELETE", &*own, &NONE);
        let (dry, _) = rehearsal.both(caller, sent).await;
        assert_eq!(dry.status, status, "{}", dry.body);
    }
}

/// Adds 1100 node pools to a cluster.
const CROWD: &str = "WITH made AS (
    INSERT INTO resources (id, owner_id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
    SELECT gen_random_uuid(), t.id, t.created_at, t.updated_at, 1, 'NodePool', 'pool-' || n, 'a', 'a', '{}'
    FROM resources t, generate_series(1, 1100) n WHERE t.name = 'crowded' RETURNING 1)
    SELECT count(*) FROM made";

#[tokio::test]
async fn a_plan_lists_a_thousand_effects_and_counts_all() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("crowded").await;
    assert_eq!(api.count(CROWD).await, 1100);
    let dry = dry_run(&api, (&[], "DELETE", &cluster, &NONE)).await;
    assert_eq!(dry.status, 202, "{}", dry.body);
    let said = &dry.body["dry_run"];
    assert_eq!(effects(&dry).len(), 1000);
    assert_eq!(
        (&said["effects_total"], &said["partial"]),
        (&json!(1101), &json!(true))
    );
}

#[tokio::test]
async fn a_plan_without_memory_for_its_answer_is_refused() {
    let limits = Limits {
        buffered_bytes_max: 100_000,
        ..Limits::default()
    };
    let admission = Admission::new(Gate::serving(), &limits);
    let api = TestApi::spawn_admitted(&admission).await;
    let cluster = api.cluster("crowded").await;
    assert_eq!(api.count(CROWD).await, 1100);
    // A body that is half there holds most of it.
    let mut slow = TcpStream::connect(api.address()).await.unwrap();
    let head =
        "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n";
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&vec![b' '; 80_000]).await.unwrap();
    until("the dry run is refused", async || {
        let dry = dry_run(&api, (&[], "DELETE", &cluster, &NONE)).await;
        if dry.status == 202 {
            return false;
        }
        assert_eq!(dry.problem(), (503, "SVC-001"));
        true
    })
    .await;
    assert_eq!(api.delete(&cluster).await.status, 202);
    drop(slow);
}

#[tokio::test]
async fn every_violation_is_named() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let body = json!({"kind": "Cluster", "name": "No Name", "labels": {"a b": "x"}, "spec": {}});
    let (dry, _) = rehearsal.send("POST", "/clusters", body).await;
    assert_eq!(dry.body["errors"].as_array().map(Vec::len), Some(2));
}

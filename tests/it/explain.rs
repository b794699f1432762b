//! `…/{id}/explain`: what a resource waits for, and what prevents its deletion.

use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::support::{
    ACME, Answer, BETA, SYSTEM, TestApi, Walls, child, linked, root, ruled, still, until,
};

/// Clusters with node pools, whose disks go with them, and keys, which must be deleted first. Add-ons link to node
/// pools and clusters. Channels need no adapter. Sites have a rule for the data of their adapter, and one that fails.
fn kinds() -> Vec<EntityConfig> {
    let addons = root("Addon", "addons", &["dns"]);
    let links = [("cluster", "Cluster", 0, 0), ("pool", "NodePool", 0, 0)];
    let rules = [
        (
            "Zoned",
            "statuses.exists(s, has(s.data.zone))",
            "true",
            "statuses[0].data.zone",
        ),
        ("Broken", "resource.spec.missing > 1", "true", "''"),
    ];
    vec![
        root("Cluster", "clusters", &["validation", "dns"]),
        child(
            "Cluster",
            "cascade",
            root("NodePool", "nodepools", &["dns"]),
        ),
        child("NodePool", "cascade", root("Disk", "disks", &["dns"])),
        child("Cluster", "restrict", root("Key", "keys", &["dns"])),
        linked(&links, addons),
        root("Channel", "channels", &[]),
        ruled(&rules, root("Site", "sites", &["dns"])),
    ]
}

async fn spawn() -> TestApi {
    TestApi::spawn_with(&kinds()).await
}

async fn explained(api: &TestApi, path: &str) -> Value {
    let answer = api.get(&format!("{path}/explain")).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

/// Whether the resource waits, and the summary without its times.
async fn summary(api: &TestApi, path: &str) -> (bool, String) {
    let body = explained(api, path).await;
    let text = body["summary"].as_str().unwrap();
    let text = text.split(", since ").next().unwrap();
    (body["waits"].as_bool().unwrap(), text.to_owned())
}

/// Each adapter with its state and whether it is waited for.
fn adapters(body: &Value) -> Vec<(&str, &str, bool)> {
    let adapters = body["adapters"].as_array().unwrap().iter();
    adapters
        .map(|a| {
            let text = |member: &str| a[member].as_str().unwrap();
            (
                text("adapter"),
                text("state"),
                a["waited_for"].as_bool().unwrap(),
            )
        })
        .collect()
}

fn sentences<'a>(body: &'a Value, member: &str) -> Vec<&'a str> {
    let items = body.pointer(member).unwrap().as_array().unwrap();
    items
        .iter()
        .map(|i| i["sentence"].as_str().unwrap())
        .collect()
}

async fn addon(api: &TestApi, name: &str, ref_type: &str, target: &str) -> Answer {
    let kind = if ref_type == "pool" {
        "NodePool"
    } else {
        "Cluster"
    };
    let id = target.rsplit('/').next().unwrap();
    let references = json!({ref_type: [{"kind": kind, "id": id}]});
    let body = json!({"kind": "Addon", "name": name, "spec": {}, "references": references});
    let made = api.post("/addons", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made
}

#[tokio::test]
async fn an_active_resource_waits_for_its_adapters() {
    let api = spawn().await;
    let cluster = api.cluster("prod").await;
    let body = explained(&api, &cluster).await;
    assert_eq!(
        adapters(&body),
        [
            ("validation", "never_reported", true),
            ("dns", "never_reported", true)
        ]
    );
    assert_eq!(
        body["summary"],
        "Cluster \"prod\" waits for 2 of 2 required adapters to report Available=True at generation 1 \
         (validation: no accepted report, dns: no accepted report), since 2026-01-01T10:00:00Z (0 s)."
    );
    assert_eq!(
        body["adapters"][0],
        json!({
            "adapter": "validation",
            "sentence": "Adapter validation has no accepted report on the resource, created at 2026-01-01T10:00:00Z (0 s ago).",
            "since_time": "2026-01-01T10:00:00Z",
            "stale": false,
            "state": "never_reported",
            "waited_for": true,
        })
    );
    assert_eq!(body["waits_since_time"], "2026-01-01T10:00:00Z");
    let got = api.get(&cluster).await.body;
    for member in ["generation", "href", "id", "kind", "name"] {
        assert_eq!(body[member], got[member], "{member}");
    }
    assert_eq!(body.get("deleted_time"), None);

    // One is not available, with a message, which is repeated unchanged; one is done; one is not required.
    api.clock.advance(60);
    let message = "unit web@1.service: on no machine\nMachineMetadata=region=eu: 3 machines";
    let failing = json!({
        "adapter": "dns", "observed_generation": 1, "observed_time": api.clock.now(),
        "conditions": [
            {"type": "Available", "status": "False", "reason": "NotPlaced", "message": message},
            {"type": "Applied", "status": "True"},
            {"type": "Health", "status": "True"},
        ],
    });
    assert_eq!(
        api.put(&format!("{cluster}/statuses"), failing)
            .await
            .status,
        201
    );
    api.report(&cluster, "validation", 1, &[]).await;
    api.report(&cluster, "extra", 1, &[]).await;
    let body = explained(&api, &cluster).await;
    assert_eq!(
        adapters(&body),
        [
            ("validation", "done", false),
            ("dns", "not_available", true),
            ("extra", "not_required", false)
        ]
    );
    let dns = &body["adapters"][1];
    assert_eq!(dns["condition"]["message"], message);
    assert_eq!(dns["condition"]["reason"], "NotPlaced");
    assert_eq!(dns["observed_generation"], 1);
    assert_eq!(dns["since_time"], "2026-01-01T10:01:00Z");
    assert_eq!(
        dns["sentence"],
        "Adapter dns reports Available=False at generation 1 since 2026-01-01T10:01:00Z (0 s): NotPlaced: unit \
         web@1.service: on no machine MachineMetadata=region=eu: 3 machines."
    );

    // After a change all reports are of an old generation, and later they are stale.
    api.patch(&cluster, json!({"spec": {"a": 1}})).await;
    api.clock.advance(3600);
    let body = explained(&api, &cluster).await;
    assert_eq!(
        adapters(&body)[..2],
        [
            ("validation", "old_generation", true),
            ("dns", "old_generation", true)
        ]
    );
    assert_eq!(body["adapters"][0]["stale"], true);
    assert_eq!(
        body["adapters"][0]["sentence"],
        "Adapter validation has an accepted report on generation 1, but none on generation 2, declared at 2026-01-01T10:01:00Z \
         (60 min ago); its latest accepted report is stale, from 2026-01-01T10:01:00Z (60 min ago)."
    );

    for adapter in ["validation", "dns"] {
        api.report(&cluster, adapter, 2, &[]).await;
    }
    let body = explained(&api, &cluster).await;
    assert_eq!(body["waits"], false);
    assert_eq!(body.get("waits_since_time"), None);
    assert_eq!(
        body["summary"],
        "Cluster \"prod\" waits for nothing: all 2 required adapters report Available=True at generation 2."
    );
    assert_eq!(
        body["deletion"],
        json!({"blocked": false, "sentence": "Nothing prevents a DELETE."})
    );
}

#[tokio::test]
async fn an_adapter_may_not_know_or_know_too_much() {
    let api = spawn().await;
    let cluster = api.cluster("prod").await;
    api.report(&cluster, "dns", 1, &[("Available", "Unknown")])
        .await;
    api.report(&cluster, "validation", 1, &[]).await;
    // As after a restore: the adapter has seen a later generation.
    let mut connection = api.database.connect().await;
    let later = "UPDATE adapter_reports SET observed_generation = 9 WHERE adapter = 'validation'";
    sqlx::raw_sql(later).execute(&mut connection).await.unwrap();
    let body = explained(&api, &cluster).await;
    assert_eq!(
        adapters(&body),
        [
            ("validation", "future_generation", true),
            ("dns", "unknown", true)
        ]
    );
    // The condition of that adapter is the one of before.
    let condition = &body["conditions"][0];
    assert_eq!(condition["type"], "ValidationSuccessful");
    assert_eq!(
        (&condition["state"], &condition["status"]),
        (&json!("outdated"), &json!("True"))
    );
}

#[tokio::test]
async fn reports_that_were_not_accepted_are_not_denied() {
    let api = spawn().await;
    let cluster = api.cluster("prod").await;
    let statuses = format!("{cluster}/statuses");
    let refused = json!({
        "adapter": "validation", "observed_generation": 1, "observed_time": api.clock.now(),
        "conditions": [{"type": "Available", "status": "True"}],
    });
    assert_eq!(api.put(&statuses, refused).await.status, 400);
    api.report(&cluster, "dns", 1, &[]).await;
    api.clock.advance(60);
    api.patch(&cluster, json!({"spec": {"a": 1}})).await;
    api.clock.advance(1);
    let discarded = api.report(&cluster, "dns", 2, &[("Available", "Unknown")]);
    assert_eq!(discarded.await.status, 204);
    let body = explained(&api, &cluster).await;
    assert_eq!(
        sentences(&body, "/adapters"),
        [
            "Adapter validation has no accepted report on the resource, created at 2026-01-01T10:00:00Z (61 s ago).",
            "Adapter dns has an accepted report on generation 1, but none on generation 2, declared at \
             2026-01-01T10:01:00Z (1 s ago).",
        ]
    );
}

#[tokio::test]
async fn a_finalizing_resource_waits_for_its_adapters_and_descendants() {
    let api = spawn().await;
    let cluster = api.cluster("prod").await;
    let pool = api.nodepool(&cluster, "workers").await;
    let flat = pool.strip_prefix(&cluster).unwrap();
    let disk = api.make(&format!("{flat}/disks"), "Disk", "root").await;
    api.clock.advance(120);
    api.deleted(&cluster).await;
    api.report(&cluster, "dns", 2, &[]).await;
    api.finalize(&cluster, &["validation"], 2).await;
    let body = explained(&api, &cluster).await;
    assert_eq!(
        adapters(&body),
        [
            ("validation", "done", false),
            ("dns", "not_finalized", true)
        ]
    );
    assert_eq!(
        body["summary"],
        "Cluster \"prod\" is finalizing and waits for 1 of 2 required adapters to report Finalized=True at generation 2 \
         (dns: not finalized), and for the removal of 2 descendants (NodePool \"workers\", Disk \"root\"), since \
         2026-01-01T10:02:00Z (0 s)."
    );
    assert_eq!(body["deleted_time"], "2026-01-01T10:02:00Z");
    assert_eq!(body["deleted_by"], "system@hyperfleet.local");
    assert_eq!(body["waits_since_time"], "2026-01-01T10:02:00Z");
    assert_eq!(
        body["deletion"],
        json!({
            "blocked": true,
            "sentence": "The deletion was requested at 2026-01-01T10:02:00Z; the resource is removed when it no longer waits for anything.",
        })
    );
    let children = &body["children"];
    assert_eq!(
        (&children["total"], &children["hidden"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(children["partial"], false);
    let first = &children["items"][0];
    assert_eq!(first["href"], format!("/api/hyperfleet/v1{pool}"));
    assert_eq!(
        (&first["level"], &first["kind"]),
        (&json!(1), &json!("NodePool"))
    );
    assert_eq!(first["reason"], "ReconciledMissingAdapters");
    assert_eq!(
        sentences(&body, "/children/items"),
        [
            "NodePool \"workers\" is finalizing since 2026-01-01T10:02:00Z (0 s): Required adapters not reporting \
             Finalized=True: [dns]. Currently reporting: [].",
            "Disk \"root\" is finalizing since 2026-01-01T10:02:00Z (0 s): Required adapters not reporting \
             Finalized=True: [dns]. Currently reporting: [].",
        ]
    );
    assert_eq!(children["items"][1]["level"], 2);

    // With each removal it waits for less; in the end it is gone, and nothing explains it.
    api.clock.advance(1);
    api.finalize(&cluster, &["dns"], 2).await;
    let expected = "Cluster \"prod\" is finalizing and waits for the removal of 2 descendants (NodePool \"workers\", Disk \"root\")";
    assert_eq!(summary(&api, &cluster).await, (true, expected.to_owned()));
    api.finalize(&disk, &["dns"], 2).await;
    let expected = "Cluster \"prod\" is finalizing and waits for the removal of 1 descendant (NodePool \"workers\")";
    assert_eq!(summary(&api, &cluster).await, (true, expected.to_owned()));
    assert_eq!(
        api.get(&format!("{disk}/explain")).await.problem(),
        (404, "NTF-001")
    );
    api.finalize(&pool, &["dns"], 2).await;
    for path in [&cluster, &pool] {
        let answer = api.get(&format!("{path}/explain")).await;
        assert_eq!(answer.problem(), (404, "NTF-001"));
        assert_eq!(answer.body["detail"], api.get(path).await.body["detail"]);
    }
}

#[tokio::test]
async fn what_a_delete_is_refused_for_is_named() {
    let api = spawn().await;
    let cluster = api.cluster("prod").await;
    let pool = api.nodepool(&cluster, "workers").await;
    let key = api.make(&format!("{cluster}/keys"), "Key", "admin").await;
    let on_pool = addon(&api, "monitoring", "pool", &pool).await;
    let on_cluster = addon(&api, "logging", "cluster", &cluster).await;
    let body = explained(&api, &cluster).await;
    assert_eq!(
        body["deletion"],
        json!({
            "blocked": true,
            "sentence": "A DELETE is refused: 1 active descendant (Key \"admin\") must be deleted first, and 2 references \
                (Addon \"logging\", Addon \"monitoring\") must be removed first.",
        })
    );
    assert_eq!(
        sentences(&body, "/children/items"),
        [
            "Key \"admin\" is active, and its kind restricts the deletion of its parent: delete it first."
        ]
    );
    assert_eq!(
        sentences(&body, "/referrers/items"),
        [
            "Addon \"logging\" references the resource as \"cluster\": remove the reference first.",
            "Addon \"monitoring\" references NodePool \"workers\" below it as \"pool\": remove the reference first.",
        ]
    );
    let referrer = &body["referrers"]["items"][1];
    assert_eq!(referrer["id"], on_pool.id());
    let target = &referrer["target"]["id"];
    assert_eq!(*target, json!(pool.rsplit('/').next().unwrap()));
    // It says what the service does: as long as it is blocked, a DELETE is refused.
    for removed in [
        Some(key),
        Some(format!("/addons/{}", on_pool.id())),
        Some(format!("/addons/{}", on_cluster.id())),
        None,
    ] {
        let blocked = explained(&api, &cluster).await["deletion"]["blocked"] == true;
        assert_eq!(blocked, removed.is_some());
        let status = api.delete(&cluster).await.status;
        assert_eq!(status, if blocked { 409 } else { 202 });
        if let Some(path) = removed {
            api.deleted(&path).await;
        }
    }
}

#[tokio::test]
async fn a_kind_without_adapters_waits_for_nothing() {
    let api = spawn().await;
    let channel = api.make("/channels", "Channel", "stable").await;
    let body = explained(&api, &channel).await;
    assert_eq!(
        body["summary"],
        "Channel \"stable\" waits for nothing: its kind requires no adapters."
    );
    assert_eq!(
        (&body["adapters"], &body["waits"]),
        (&json!([]), &json!(false))
    );
    assert_eq!(body["deletion"]["sentence"], "Nothing prevents a DELETE.");
}

#[tokio::test]
async fn derived_conditions_name_their_rules_and_failures() {
    let api = spawn().await;
    let site = api.make("/sites", "Site", "here").await;
    let of = |body: &Value, member: &str| {
        let all = body["conditions"].as_array().unwrap().iter();
        all.map(|c| c[member].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let body = explained(&api, &site).await;
    assert_eq!(of(&body, "type"), ["Broken", "Zoned"]);
    assert_eq!(of(&body, "state"), ["failed", "not_applicable"]);
    assert_eq!(of(&body, "error"), ["when: there is no \"missing\"", ""]);
    let conditions = ["Available", "Applied", "Health"];
    let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
    let report = json!({
        "adapter": "dns", "observed_generation": 1, "observed_time": api.clock.now(), "data": {"zone": "z1"},
        "conditions": conditions,
    });
    api.put(&format!("{site}/statuses"), report).await;
    let body = explained(&api, &site).await;
    assert_eq!(of(&body, "state"), ["failed", "derived"]);
    assert_eq!(of(&body, "status"), ["", "True"]);
    assert_eq!(of(&body, "rule"), ["Broken", "Zoned"]);
    assert_eq!(
        sentences(&body, "/conditions"),
        [
            "Condition Broken is absent and stays so: the rule Broken of kind Site fails: when: there is no \"missing\".",
            "Condition Zoned is True by the rule Zoned of kind Site: Derived: z1.",
        ]
    );
}

#[tokio::test]
async fn a_changed_configuration_shows() {
    let before = spawn().await;
    let cluster = before.cluster("prod").await;
    for adapter in ["validation", "dns"] {
        before.report(&cluster, adapter, 1, &[]).await;
    }
    let channel = before.make("/channels", "Channel", "stable").await;
    let finalizing = before.cluster("going").await;
    before.deleted(&finalizing).await;
    before.finalize(&finalizing, &["dns"], 2).await;
    // From now on clusters wait for dns and billing, and channels are not configured.
    let mut kinds = kinds();
    kinds[0].required_adapters = vec!["dns".to_owned(), "billing".to_owned()];
    kinds.retain(|kind| kind.kind != "Channel");
    let registry = hyperfleet_domain::entity_config::registry(&kinds).unwrap();
    let store = before.database.store();
    let api = TestApi::spawn_on(registry, before.database, store, false);
    let body = explained(&api, &cluster).await;
    assert_eq!(
        adapters(&body),
        [
            ("dns", "done", false),
            ("billing", "never_reported", true),
            ("validation", "not_required", false)
        ]
    );
    let outdated = sentences(&body, "/conditions");
    assert_eq!(
        outdated[0],
        "Condition Reconciled is True, but the present configuration and reports give another result: the next change or report updates it."
    );
    assert_eq!(body["conditions"][0].get("rule"), None);
    let id = channel.rsplit('/').next().unwrap();
    let (waits, summary) = summary(&api, &format!("/resources/{id}")).await;
    assert!(
        !waits && summary.ends_with("its kind is no longer configured."),
        "{summary}"
    );
}

#[tokio::test]
async fn a_stuck_finalizing_resource_says_how_to_remove_it() {
    let before = spawn().await;
    let cluster = before.cluster("going").await;
    before.deleted(&cluster).await;
    before.finalize(&cluster, &["dns"], 2).await;
    // The adapter that never came back is not required any more.
    let mut kinds = kinds();
    kinds[0].required_adapters = vec!["dns".to_owned()];
    let registry = hyperfleet_domain::entity_config::registry(&kinds).unwrap();
    let store = before.database.store();
    let api = TestApi::spawn_on(registry, before.database, store, false);
    let expected =
        "Cluster \"going\" is finalizing and waits for nothing: a repeated DELETE removes it.";
    assert_eq!(summary(&api, &cluster).await, (false, expected.to_owned()));
    api.deleted(&cluster).await;
    assert!(!api.has(&cluster).await);
}

#[tokio::test]
async fn every_path_of_a_resource_has_the_same_explanation() {
    let api = spawn().await;
    let cluster = api.cluster("prod").await;
    let pool = api.nodepool(&cluster, "workers").await;
    let id = pool.rsplit('/').next().unwrap();
    let nested = explained(&api, &pool).await;
    assert_eq!(nested["name"], "workers");
    assert_eq!(explained(&api, &format!("/nodepools/{id}")).await, nested);
    assert_eq!(explained(&api, &format!("/resources/{id}")).await, nested);
    let slash = api.get(&format!("{pool}/explain/")).await;
    assert_eq!((slash.status, slash.body), (200, nested));
    let none = "01890000-0000-7000-8000-000000000000";
    for path in [
        format!("/clusters/{id}"),
        format!("/clusters/{none}"),
        "/clusters/none".to_owned(),
        format!("{cluster}/nodepools/{none}"),
        format!("/clusters/{none}/nodepools/{id}"),
        format!("/resources/{none}"),
    ] {
        let answer = api.get(&format!("{path}/explain")).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{path}");
        assert_eq!(answer.body["detail"], api.get(&path).await.body["detail"]);
    }
}

#[tokio::test]
async fn other_tenants_are_counted_but_not_named() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta, system) = (api.speaking(ACME), api.speaking(BETA), api.speaking(SYSTEM));
    let cluster = acme.cluster("prod").await;
    let key = acme.make(&format!("{cluster}/keys"), "Key", "admin").await;
    addon(&acme, "logging", "cluster", &cluster).await;
    addon(&acme, "secret", "cluster", &cluster).await;
    assert_eq!(
        beta.get(&format!("{cluster}/explain")).await.problem(),
        (404, "NTF-001")
    );
    // An operator assigns two of the resources around it to another tenant.
    let mut connection = api.database.connect().await;
    let reassigned =
        "UPDATE resources SET tenancy = '{\"org\": \"beta\"}' WHERE name IN ('admin', 'secret')";
    sqlx::raw_sql(reassigned)
        .execute(&mut connection)
        .await
        .unwrap();
    let body = explained(&acme, &cluster).await;
    assert_eq!(
        body["deletion"]["sentence"],
        "A DELETE is refused: 1 active descendant (1 of other tenants) must be deleted first, and 2 references \
         (Addon \"logging\", 1 of other tenants) must be removed first."
    );
    assert_eq!(
        body["children"],
        json!({"hidden": 1, "items": [], "partial": false, "total": 1})
    );
    assert_eq!(body["referrers"]["hidden"], 1);
    let id = key.rsplit('/').next().unwrap();
    let text = body.to_string();
    assert!(
        !text.contains("secret") && !text.contains("admin") && !text.contains(id),
        "{text}"
    );
    // Those who see everything see them.
    let body = explained(&system, &cluster).await;
    assert_eq!(body["children"]["hidden"], 0);
    assert_eq!(body["children"]["items"][0]["name"], "admin");
}

/// More children than are read.
const CROWD: i32 = 20_000;

const SEED: [&str; 2] = [
    "INSERT INTO resources (id, owner_id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
     SELECT gen_random_uuid(), t.id, t.created_at, t.updated_at, 1, 'Key', 'key-' || n, 'a', 'a', '{}'
     FROM resources t, generate_series(1, $1) n WHERE t.name = 'crowded'",
    "INSERT INTO resource_references (source_id, target_id, ref_type, target_kind)
     SELECT s.id, t.id, 'cluster', 'Cluster' FROM resources s, resources t
     WHERE s.owner_id IS NOT NULL AND t.name = 'linked' AND $1 > 0",
];

/// More node pools than are read, and a disk of one of them. All reference their cluster.
const LARGE_FAMILY: [&str; 3] = [
    "INSERT INTO resources (id, owner_id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
     SELECT gen_random_uuid(), t.id, t.created_at, t.updated_at, 1, 'NodePool', 'pool-' || n, 'a', 'a', '{}'
     FROM resources t, generate_series(1, 1100) n WHERE t.name = 'large'",
    "INSERT INTO resources (id, owner_id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
     SELECT gen_random_uuid(), t.id, t.created_at, t.updated_at, 1, 'Disk', 'disk', 'a', 'a', '{}'
     FROM resources t WHERE t.name = 'pool-1'",
    "INSERT INTO resource_references (source_id, target_id, ref_type, target_kind)
     SELECT s.id, t.id, 'cluster', 'Cluster' FROM resources s, resources t
     WHERE s.kind IN ('NodePool', 'Disk') AND t.name = 'large'",
];

#[tokio::test]
async fn references_from_inside_a_large_family_block_nothing() {
    let api = spawn().await;
    let cluster = api.cluster("large").await;
    let mut connection = api.database.connect().await;
    for sql in LARGE_FAMILY {
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    let outside = addon(&api, "logging", "cluster", &cluster).await;
    let body = explained(&api, &cluster).await;
    assert_eq!(
        sentences(&body, "/referrers/items"),
        ["Addon \"logging\" references the resource as \"cluster\": remove the reference first."]
    );
    assert_eq!(body["referrers"]["total"], 1);
    assert_eq!(api.delete(&cluster).await.status, 409);
    api.deleted(&format!("/addons/{}", outside.id())).await;
    let body = explained(&api, &cluster).await;
    assert_eq!(
        body["deletion"],
        json!({
            "blocked": false,
            "sentence": "Nothing prevents a DELETE among the resources that were checked; there are more.",
        })
    );
    assert_eq!(body["referrers"]["total"], 0);
    assert_eq!(api.delete(&cluster).await.status, 202);
}

/// After five times the server keeps a plan.
const ROUNDS: usize = 8;
/// How often targets of references were looked up.
const LOOKUPS: &str =
    "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'resource_references_target'";
/// How many entries of indexes were read.
const ENTRIES_READ: &str = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes
    WHERE relname IN ('resources', 'resource_references')";

/// How often each table was scanned.
async fn table_scans(connection: &mut PgConnection) -> Vec<(String, i64)> {
    let counters = "SELECT relname::text, seq_scan FROM pg_stat_user_tables
        WHERE relname IN ('adapter_reports', 'resources', 'resource_references') ORDER BY 1";
    sqlx::query_as(counters)
        .fetch_all(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn large_counts_stop_at_a_limit_without_a_table_scan() {
    let api = spawn().await;
    let crowded = api.cluster("crowded").await;
    let linked = api.cluster("linked").await;
    let unreferenced = api.cluster("alone").await;
    let mut connection = api.database.connect().await;
    for sql in SEED {
        sqlx::query(sql)
            .bind(CROWD)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    for sql in [
        "VACUUM ANALYZE resources",
        "VACUUM ANALYZE resource_references",
    ] {
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    // The end of the connection publishes its counters.
    connection.close().await.unwrap();
    let mut connection = api.database.connect().await;
    let before = still(async || table_scans(&mut connection).await).await;
    let used = api.count(LOOKUPS).await;
    let read = api.count(ENTRIES_READ).await;
    for _ in 0..ROUNDS {
        let body = explained(&api, &crowded).await;
        let children = &body["children"];
        assert_eq!(
            (&children["total"], &children["partial"]),
            (&json!(1000), &json!(true))
        );
        assert_eq!(children["items"].as_array().unwrap().len(), 20);
        let sentence = body["deletion"]["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("at least 1000 active descendants"),
            "{sentence}"
        );
        let body = explained(&api, &linked).await;
        let referrers = &body["referrers"];
        assert_eq!(
            (&referrers["total"], &referrers["partial"]),
            (&json!(1000), &json!(true))
        );
        assert_eq!(
            explained(&api, &unreferenced).await["deletion"]["blocked"],
            false
        );
    }
    // Each of the 1000 children was looked up as a target.
    let least = i64::try_from(ROUNDS).unwrap() * 1000;
    until("the database has counted its scans", async || {
        // It does so once a second, when it has something to do.
        explained(&api, &unreferenced).await;
        api.count(LOOKUPS).await >= used + least
    })
    .await;
    assert_eq!(table_scans(&mut connection).await, before);
    // Nor was an index: that of a resource without children would have 20,000 entries each time.
    let read = api.count(ENTRIES_READ).await - read;
    let most = i64::try_from(ROUNDS).unwrap() * i64::from(CROWD) / 2;
    assert!(read < most, "{read} entries of indexes");
}

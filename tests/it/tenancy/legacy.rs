//! Relations between tenants from before tenancy was enforced: ownership decides what becomes of
//! them, and no answer names what its caller does not see.

use hyperfleet_domain::entity_config::{EntityConfig, registry};
use serde_json::{Value, json};

use super::{Fleet, addon, kinds, with_rule};
use crate::support::{ACME, BETA, SYSTEM, TestApi, Walls, assert_sound, child, linked, root};

/// Another server on the same database.
fn walled(api: &TestApi, kinds: &[EntityConfig]) -> TestApi {
    let database = crate::support::TestDatabase::at(api.database.options());
    TestApi::again_for(registry(kinds).unwrap(), database, Walls::Up)
}

/// A cluster of one tenant with a node pool of another in it, and the path to either by itself.
struct Mixed {
    acme: TestApi,
    beta: TestApi,
    cluster: String,
    pool: String,
}

async fn mixed(kinds: &[EntityConfig]) -> Mixed {
    let open = TestApi::spawn_for(kinds, Walls::Down).await;
    let cluster = open.speaking(ACME).cluster("ours").await;
    let pool = open.speaking(BETA).nodepool(&cluster, "theirs").await;
    let walled = walled(&open, kinds);
    Mixed {
        acme: walled.speaking(ACME),
        beta: walled.speaking(BETA),
        cluster,
        pool: format!("/nodepools/{}", pool.rsplit('/').next().unwrap()),
    }
}

#[tokio::test]
async fn children_of_another_tenants_resource_have_only_direct_paths() {
    let mut ruled = kinds();
    ruled[1] = with_rule(ruled[1].clone());
    for kinds in [kinds(), ruled] {
        is_reached_only_directly(mixed(&kinds).await).await;
    }
}

async fn is_reached_only_directly(mixed: Mixed) {
    let Mixed {
        acme,
        beta,
        cluster,
        pool,
    } = mixed;
    let nested = format!("{cluster}{pool}");
    assert_eq!(beta.get(&pool).await.status, 200);
    assert_eq!(beta.report(&pool, "dns", 1, &[]).await.status, 201);
    assert_eq!(acme.get(&pool).await.status, 404);
    // The path leads through what its tenant does not see.
    let nobody = Fleet::of_nobody();
    let missing = format!("/clusters/{}{pool}", nobody.cluster);
    for (method, suffix, body) in [
        ("GET", "", Value::Null),
        ("PATCH", "", json!({"labels": {"a": "b"}})),
        ("PATCH", "", json!({"references": {}})),
        ("DELETE", "", Value::Null),
        ("GET", "/statuses", Value::Null),
        ("POST", "/force-delete", json!({"reason": "for a test"})),
    ] {
        let send = async |path: &str| {
            let path = format!("{path}{suffix}");
            beta.send(method, &path, body.clone()).await
        };
        let (answer, expected) = (send(&nested).await, send(&missing).await);
        assert_eq!(answer.status, 404, "{method} {suffix}: {}", answer.body);
        let id = cluster.rsplit('/').next().unwrap();
        let said = answer.detail().replace(id, &nobody.cluster);
        assert_eq!(said, expected.detail(), "{method} {suffix}");
    }
    let report = beta.report(&nested, "dns", 1, &[]).await;
    assert_eq!(report.status, 404);
    let list = beta.get(&format!("{cluster}/nodepools")).await;
    assert_eq!(list.status, 404, "{}", list.body);
    // The owner sees an empty list.
    let list = acme.get(&format!("{cluster}/nodepools")).await;
    assert_eq!((list.status, &list.body["total"]), (200, &json!(0)));
}

#[tokio::test]
async fn a_cascade_takes_along_what_others_have_below_however_it_ends() {
    for is_forced in [false, true] {
        let Mixed {
            acme,
            beta,
            cluster,
            pool,
        } = mixed(&kinds()).await;
        acme.deleted(&cluster).await;
        let seen = beta.get(&pool).await;
        assert!(seen.body["deleted_time"].is_string(), "{}", seen.body);
        let trail = beta.get("/audit?action=delete").await;
        assert_eq!(trail.body["total"], 1);
        assert_eq!(trail.items()[0]["tenancy"], json!({"org": "beta"}));
        let ending = if is_forced {
            let reason = json!({"reason": "for a test"});
            let forced = acme.post(&format!("{cluster}/force-delete"), reason).await;
            assert_eq!(forced.status, 204);
            "force_delete"
        } else {
            // The owner waits for it, without the reason.
            acme.finalize(&cluster, &["dns"], 2).await;
            assert_eq!(acme.get(&cluster).await.status, 200);
            beta.finalize(&pool, &["dns"], 2).await;
            "hard_delete"
        };
        assert_eq!(beta.get(&pool).await.status, 404);
        assert_eq!(acme.get(&cluster).await.status, 404);
        for (tenant, org, kind) in [(&acme, "acme", "Cluster"), (&beta, "beta", "NodePool")] {
            let gone = tenant.get(&format!("/audit?action={ending}")).await;
            assert_eq!(gone.column("kind"), [kind], "{org}");
            assert_eq!(gone.items()[0]["tenancy"], json!({"org": org}));
        }
        assert_eq!(acme.get("/audit").await.column("kind"), ["Cluster"; 3]);
        assert_sound(&mut acme.database.connect().await, &kinds()).await;
    }
}

#[tokio::test]
async fn foreign_active_children_block_a_deletion_unnamed() {
    let kinds = [
        root("Cluster", "clusters", &["dns"]),
        child(
            "Cluster",
            "restrict",
            root("NodePool", "nodepools", &["dns"]),
        ),
    ];
    let Mixed {
        acme,
        beta,
        cluster,
        pool,
    } = mixed(&kinds).await;
    let refused = acme.delete(&cluster).await;
    assert_eq!(refused.problem(), (409, "CNF-003"));
    let id = cluster.rsplit('/').next().unwrap();
    let says = format!("Cannot delete Cluster '{id}': active NodePool(s) exist");
    assert_eq!(refused.detail(), says);
    beta.deleted(&pool).await;
    acme.deleted(&cluster).await;
}

#[tokio::test]
async fn referrers_of_others_hold_a_deletion_back_without_being_named() {
    let open = TestApi::spawn_for(&kinds(), Walls::Down).await;
    let (acme, beta) = (open.speaking(ACME), open.speaking(BETA));
    let made = acme.made("/clusters", "Cluster", "ours").await;
    let (id, path) = (made.id(), format!("/clusters/{}", made.id()));
    let theirs = beta.post("/addons", addon("secret", id)).await;
    assert_eq!(theirs.status, 201);
    let walled = walled(&open, &kinds());
    let (acme, beta) = (walled.speaking(ACME), walled.speaking(BETA));
    let refusal = async || {
        let refused = acme.delete(&path).await;
        assert_eq!(refused.problem(), (409, "CNF-003"), "{}", refused.body);
        refused.detail().to_owned()
    };
    let says = |by: &str| {
        format!(
            "cannot delete Cluster \"ours\": referenced by {by} — remove the reference(s) before deleting"
        )
    };
    assert_eq!(refusal().await, says("resources of other tenants"));
    let ours = acme.post("/addons", addon("visible", id)).await;
    assert_eq!(ours.status, 201);
    let both = "Addon \"visible\", resources of other tenants";
    assert_eq!(refusal().await, says(both));
    // What links to what its tenant does not see can be changed, but not linked again, nor found by it.
    let theirs = format!("/addons/{}", theirs.id());
    let labels = json!({"labels": {"a": "b"}});
    assert_eq!(beta.patch(&theirs, labels).await.status, 200);
    let links = json!({"references": {"cluster": [{"kind": "Cluster", "id": id}]}});
    let refused = beta.patch(&theirs, links).await;
    assert_eq!(refused.problem(), (400, "VAL-000"), "{}", refused.body);
    let not_found = format!("reference type \"cluster\": target Cluster \"{id}\" not found");
    assert_eq!(refused.detail(), not_found);
    let filter = format!("/addons?ref_type=cluster&ref_target_id={id}");
    assert_eq!(beta.get(&filter).await.body["total"], 0);
    assert_eq!(acme.get(&filter).await.body["total"], 1);
    assert_eq!(walled.speaking(SYSTEM).get(&filter).await.body["total"], 2);
    beta.deleted(&theirs).await;
    acme.deleted(&format!("/addons/{}", ours.id())).await;
    acme.deleted(&path).await;
}

#[tokio::test]
async fn what_stands_below_and_cannot_go_is_not_named() {
    let clusters = root("Cluster", "clusters", &["dns"]);
    let pools = child(
        "Cluster",
        "cascade",
        root("NodePool", "nodepools", &["dns"]),
    );
    let links = [("pool", "NodePool", 0, 0)];
    let addons = linked(&links, root("Addon", "addons", &["dns"]));
    let Mixed {
        acme,
        beta,
        cluster,
        pool,
    } = mixed(&[clusters, pools, addons]).await;
    let id = pool.rsplit('/').next().unwrap();
    let links = json!({"pool": [{"kind": "NodePool", "id": id}]});
    let addon = json!({"kind": "Addon", "name": "secret", "spec": {}, "references": links});
    assert_eq!(beta.post("/addons", addon).await.status, 201);
    let refused = acme.delete(&cluster).await;
    assert_eq!(refused.problem(), (409, "CNF-003"));
    let id = cluster.rsplit('/').next().unwrap();
    let says = "resources of other tenants below it do not allow it";
    assert_eq!(
        refused.detail(),
        format!("Cannot delete Cluster '{id}': {says}")
    );
    // A caller that sees it gets its name.
    let refused = beta.delete(&pool).await;
    let says = "cannot delete NodePool \"theirs\": referenced by Addon \"secret\"";
    assert!(refused.detail().starts_with(says), "{}", refused.body);
}

#[tokio::test]
async fn only_system_identities_see_resources_without_tenant() {
    let before = TestApi::spawn_with(&kinds()).await;
    let fleet = Fleet::of(&before, "old").await;
    let walled = walled(&before, &kinds());
    let (acme, system) = (walled.speaking(ACME), walled.speaking(SYSTEM));
    for path in fleet.paths() {
        assert_eq!(acme.get(&path).await.status, 404, "{path}");
        let seen = system.get(&path).await;
        assert_eq!((seen.status, &seen.body["tenancy"]), (200, &json!({})));
    }
    for list in ["/resources", "/audit", "/clusters"] {
        assert_eq!(acme.get(list).await.body["total"], 0, "{list}");
        assert_ne!(system.get(list).await.body["total"], 0, "{list}");
    }
    assert_eq!(acme.cluster("old").await.len(), fleet.paths()[0].len());
}

//! Names are each tenant's own.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{addon, kinds};
use crate::support::{ACME, ACME_WEB, BETA, TestApi, Walls, assert_sound};

fn cluster(name: &str) -> Value {
    json!({"kind": "Cluster", "name": name, "spec": {}})
}

#[tokio::test]
async fn tenants_may_use_the_same_name_and_each_only_once() {
    for walls in [Walls::Down, Walls::Up] {
        let api = TestApi::spawn_for(&kinds(), walls).await;
        for headers in [ACME, ACME_WEB, BETA] {
            let tenant = api.speaking(headers);
            let made = tenant.post("/clusters", cluster("same")).await;
            assert_eq!(made.status, 201, "{}", made.body);
            let mut tenancy = json!({});
            for (name, value) in headers {
                tenancy[name.strip_prefix("x-").unwrap()] = json!(value);
            }
            assert_eq!(made.body["tenancy"], tenancy);
            let path = format!("/clusters/{}", made.id());
            assert_eq!(tenant.get(&path).await.body["tenancy"], tenancy);
            let again = tenant.post("/clusters", cluster("same")).await;
            assert_eq!(again.problem(), (409, "CNF-001"), "{}", again.body);
            assert_eq!(again.detail(), "This Cluster already exists");
        }
        // The name of a finalizing resource is free.
        let beta = api.speaking(BETA);
        let id = beta.get("/clusters?search=name%3D'same'").await;
        let ids = id
            .items()
            .iter()
            .filter(|i| i["tenancy"] == json!({"org": "beta"}));
        let ids: Vec<_> = ids.map(|i| i["id"].as_str().unwrap()).collect();
        beta.deleted(&format!("/clusters/{}", ids[0])).await;
        let again = beta.post("/clusters", cluster("same")).await;
        assert_eq!(again.status, 201, "{}", again.body);
        assert_sound(&mut api.database.connect().await, &kinds()).await;
    }
}

#[tokio::test]
async fn a_childs_name_is_its_owners() {
    let api = TestApi::spawn_for(&kinds(), Walls::Down).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let path = acme.cluster("ours").await;
    let pools = format!("{path}/nodepools");
    let pool = json!({"kind": "NodePool", "name": "same", "spec": {}});
    let made = beta.post(&pools, pool.clone()).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.body["tenancy"], json!({"org": "beta"}), "the caller's");
    for tenant in [&acme, &beta] {
        let again = tenant.post(&pools, pool.clone()).await;
        assert_eq!(again.problem(), (409, "CNF-001"), "{}", again.body);
    }
}

#[tokio::test]
async fn of_many_that_want_a_name_at_once_one_of_each_tenant_gets_it() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    for round in 0..10 {
        let name = format!("name-{round}");
        let wanted = (0..24).map(|number| {
            let tenant = if number % 2 == 0 { &acme } else { &beta };
            tenant.post("/clusters", cluster(&name))
        });
        let answers = join_all(wanted).await;
        for parity in [0, 1] {
            let of_one = answers.iter().skip(parity).step_by(2);
            let statuses: Vec<_> = of_one.map(|answer| answer.status).collect();
            let made = statuses.iter().filter(|s| **s == 201).count();
            let taken = statuses.iter().filter(|s| **s == 409).count();
            assert_eq!((made, taken), (1, 11), "{statuses:?}");
        }
    }
    for tenant in [&acme, &beta] {
        let list = tenant.get("/clusters?size=100").await;
        assert_eq!((&list.body["total"], list.items().len()), (&json!(10), 10));
    }
    assert_sound(&mut api.database.connect().await, &kinds()).await;
}

/// Creates and deletes of two tenants, some of which lock targets and owners, wait for nobody for ever.
#[tokio::test]
async fn tenants_that_write_at_once_do_not_hold_each_other_up() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let tenants = [api.speaking(ACME), api.speaking(BETA)];
    let work = tenants.iter().cycle().take(8).enumerate();
    let work = work.map(|(number, tenant)| async move {
        for round in 0..6 {
            let name = format!("n-{number}-{round}");
            let made = tenant.made("/clusters", "Cluster", &name).await;
            let path = format!("/clusters/{}", made.id());
            tenant.nodepool(&path, &name).await;
            let link = tenant.post("/addons", addon(&name, made.id())).await;
            assert_eq!(link.status, 201, "{}", link.body);
            tenant.deleted(&format!("/addons/{}", link.id())).await;
            tenant.deleted(&path).await;
            let force = json!({"reason": "for a test"});
            let forced = tenant.post(&format!("{path}/force-delete"), force).await;
            assert_eq!(forced.status, 204, "{}", forced.body);
        }
    });
    join_all(work).await;
    for tenant in &tenants {
        let list = tenant.get("/resources?includeDeleted=true").await;
        assert_eq!(list.body["total"], 24, "the add-ons");
        assert_eq!(tenant.get("/resources").await.body["total"], 0);
    }
    assert_sound(&mut api.database.connect().await, &kinds()).await;
}

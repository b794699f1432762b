//! Parents and children that come and go at the same time.

use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::json;

use super::Busy;
use crate::support::{Answer, TestApi};

const ROUNDS: usize = 12;
const FINALIZED: &[(&str, &str)] = &[("Finalized", "True")];
const EXISTS: &str = "SELECT count(*) FROM resources WHERE id = $1";

impl Busy {
    /// A request in the background.
    fn report_finalized(
        &self,
        path: &str,
        adapter: &'static str,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let (api, path) = (self.api.clone(), path.to_owned());
        async move { api.report(&path, adapter, 2, FINALIZED).await }
    }

    fn delete(&self, path: &str) -> impl Future<Output = Answer> + Send + use<> {
        let (api, path) = (self.api.clone(), path.to_owned());
        async move { api.delete(&path).await }
    }

    async fn assert_gone(&self, path: &str) {
        assert_eq!(self.api.get(path).await.status, 404, "{path} was left");
        assert_eq!(self.count(EXISTS, path).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_active_child_is_left_below_a_deleted_parent() {
    let busy = Busy::spawn().await;
    let mut made = 0;
    for round in 0..ROUNDS {
        let cluster = busy.api.cluster(&format!("round-{round}")).await;
        let clients = (0..4).map(|client| {
            let (api, list) = (busy.api.clone(), format!("{cluster}/nodepools"));
            async move { create_until_refused(&api, &list, client).await }
        });
        let (children, deleted) = tokio::join!(busy.at_once(clients), busy.delete(&cluster));
        assert_eq!(deleted.status, 202);
        for path in children.iter().flatten() {
            made += 1;
            let found = busy.api.get(path).await;
            assert_eq!(
                found.body["deleted_time"], deleted.body["deleted_time"],
                "{}",
                found.body
            );
        }
    }
    assert!(made > 0, "every deletion came before the first creation");
    busy.assert_sound().await;
}

/// The paths of the nodepools that one client created before their cluster was deleted.
async fn create_until_refused(api: &TestApi, list: &str, client: usize) -> Vec<String> {
    let mut created = Vec::new();
    loop {
        let name = format!("np{client}-{}", created.len());
        let body = json!({"kind": "NodePool", "name": name, "spec": {}});
        let answer = api.post(list, body).await;
        if answer.status != 201 {
            assert_eq!(answer.problem(), (409, "CNF-003"), "{}", answer.body);
            return created;
        }
        created.push(format!("{list}/{}", answer.id()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_parent_deleted_meanwhile_takes_its_child_along() {
    let entity = |kind: &str, plural: &str, parent: &str| EntityConfig {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        parent_kind: parent.to_owned(),
        on_parent_delete: serde_json::from_value("cascade".into()).unwrap(),
        ..EntityConfig::default()
    };
    let kinds = vec![
        entity("Folder", "folders", ""),
        entity("File", "files", "Folder"),
    ];
    let busy = Busy::spawn_with(kinds).await;
    for round in 0..ROUNDS {
        let body = json!({"kind": "Folder", "name": format!("f{round}"), "spec": {}});
        let folder = format!("/folders/{}", busy.api.post("/folders", body).await.id());
        let creates = (0..8).map(|number| {
            let (api, path) = (busy.api.clone(), format!("{folder}/files"));
            async move {
                let body = json!({"kind": "File", "name": format!("f{number}"), "spec": {}});
                api.post(&path, body).await
            }
        });
        let (made, deleted) = tokio::join!(busy.at_once(creates), busy.delete(&folder));
        assert_eq!(deleted.status, 202);
        for answer in made {
            assert!(matches!(answer.status, 201 | 404), "{}", answer.body);
        }
        busy.assert_gone(&folder).await;
    }
    assert_eq!(
        busy.api.get("/resources?includeDeleted=true").await.body["total"],
        0
    );
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_two_adapters_of_a_nodepool_remove_it_between_them() {
    let busy = Busy::spawn().await;
    let cluster = busy.api.cluster("owner").await;
    for round in 0..ROUNDS {
        let pool = busy.api.nodepool(&cluster, &format!("np{round}")).await;
        assert_eq!(busy.api.delete(&pool).await.status, 202);
        let reports =
            ["validation", "hypershift"].map(|adapter| busy.report_finalized(&pool, adapter));
        for answer in busy.at_once(reports.into_iter()).await {
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
        busy.assert_gone(&pool).await;
    }
    assert_eq!(busy.api.get(&cluster).await.status, 200);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_two_nodepools_take_the_cluster_along() {
    let busy = Busy::spawn().await;
    for round in 0..ROUNDS {
        let cluster = busy.api.cluster(&format!("round-{round}")).await;
        let pools = [
            busy.api.nodepool(&cluster, "one").await,
            busy.api.nodepool(&cluster, "two").await,
        ];
        assert_eq!(busy.api.delete(&cluster).await.status, 202);
        for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
            assert_eq!(busy.report_finalized(&cluster, adapter).await.status, 201);
        }
        for pool in &pools {
            assert_eq!(busy.report_finalized(pool, "validation").await.status, 201);
        }
        let last = pools
            .iter()
            .map(|pool| busy.report_finalized(pool, "hypershift"));
        for answer in busy.at_once(last).await {
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
        for path in pools.iter().chain([&cluster]) {
            busy.assert_gone(path).await;
        }
    }
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn last_reports_of_owner_and_child_remove_both() {
    let busy = Busy::spawn().await;
    for round in 0..ROUNDS {
        let cluster = busy.api.cluster(&format!("round-{round}")).await;
        let pool = busy.api.nodepool(&cluster, "pool").await;
        assert_eq!(busy.api.delete(&cluster).await.status, 202);
        for adapter in ["validation", "dns", "pullsecret"] {
            assert_eq!(busy.report_finalized(&cluster, adapter).await.status, 201);
        }
        assert_eq!(busy.report_finalized(&pool, "validation").await.status, 201);
        let last = [&cluster, &pool].map(|path| busy.report_finalized(path, "hypershift"));
        for answer in busy.at_once(last.into_iter()).await {
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
        busy.assert_gone(&pool).await;
        busy.assert_gone(&cluster).await;
    }
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_forced_node_pool_and_a_last_report_leave_nothing() {
    let busy = Busy::spawn().await;
    for round in 0..ROUNDS {
        let cluster = busy.api.cluster(&format!("round-{round}")).await;
        let pool = busy.api.nodepool(&cluster, "pool").await;
        assert_eq!(busy.api.delete(&cluster).await.status, 202);
        for adapter in ["validation", "dns", "pullsecret"] {
            assert_eq!(busy.report_finalized(&cluster, adapter).await.status, 201);
        }
        let (api, path) = (busy.api.clone(), format!("{pool}/force-delete"));
        let force =
            tokio::spawn(async move { api.post(&path, json!({"reason": "x"})).await.status });
        let report = tokio::spawn(busy.report_finalized(&cluster, "hypershift"));
        assert_eq!(force.await.unwrap(), 204);
        assert_eq!(report.await.unwrap().status, 201);
        busy.assert_gone(&pool).await;
        busy.assert_gone(&cluster).await;
    }
    busy.assert_sound().await;
}

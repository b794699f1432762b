//! Everything at once over a handful of clusters.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;

use super::Busy;
use crate::support::{Random, TestApi};

const WORKERS: u64 = 16;
const OPERATIONS: usize = 60;
const CLUSTERS: usize = 4;

/// What there is, or was a moment ago.
struct World {
    api: Arc<TestApi>,
    clusters: Mutex<Vec<String>>,
    pools: Mutex<Vec<String>>,
}

impl World {
    async fn pick(from: &Mutex<Vec<String>>, random: &mut Random) -> String {
        let known = from.lock().await;
        // The latest ones: most of the others are gone.
        let recent = known.len().min(CLUSTERS);
        known[known.len() - 1 - random.below(recent)].clone()
    }

    /// One step of a client; gives the status of its answer.
    async fn step(&self, random: &mut Random) -> u16 {
        let api = &self.api;
        let cluster = Self::pick(&self.clusters, random).await;
        let pool = Self::pick(&self.pools, random).await;
        let number = random.next();
        api.clock.advance(1);
        match random.below(24) {
            0 => {
                let body = json!({"kind": "Cluster", "name": format!("c{number}"), "spec": {}});
                let made = api.post("/clusters", body).await;
                if made.status == 201 {
                    self.clusters
                        .lock()
                        .await
                        .push(format!("/clusters/{}", made.id()));
                }
                made.status
            }
            1..=4 => {
                let name = format!("p{}", number % 8);
                let body = json!({"kind": "NodePool", "name": name, "spec": {}});
                let made = api.post(&format!("{cluster}/nodepools"), body).await;
                if made.status == 201 {
                    let path = format!("{cluster}/nodepools/{}", made.id());
                    self.pools.lock().await.push(path);
                }
                made.status
            }
            5 | 6 => {
                api.patch(&cluster, json!({"spec": {"n": number % 4}}))
                    .await
                    .status
            }
            7 | 8 => {
                api.patch(&pool, json!({"labels": {"n": format!("{}", number % 4)}}))
                    .await
                    .status
            }
            9 => api.delete(&cluster).await.status,
            10 | 11 => api.delete(&pool).await.status,
            12 => {
                api.post(
                    &format!("{cluster}/force-delete"),
                    json!({"reason": "mixed"}),
                )
                .await
                .status
            }
            13 => {
                api.post(&format!("{pool}/force-delete"), json!({"reason": "mixed"}))
                    .await
                    .status
            }
            14..=18 => {
                self.finalize(&pool, &["validation", "hypershift"], random)
                    .await
            }
            _ => {
                let adapters = ["validation", "dns", "pullsecret", "hypershift"];
                self.finalize(&cluster, &adapters, random).await
            }
        }
    }

    /// A report at the generation that the resource has now.
    async fn finalize(&self, path: &str, adapters: &[&str], random: &mut Random) -> u16 {
        let found = self.api.get(path).await;
        let Some(generation) = found.body["generation"].as_i64() else {
            return found.status;
        };
        let finalized = if found.body["deleted_time"].is_string() {
            "True"
        } else {
            "False"
        };
        let adapter = random.pick(adapters);
        let available = random.pick(&["True", "False"]);
        let statuses = [("Finalized", finalized), ("Available", available)];
        let generation = i32::try_from(generation).unwrap();
        self.api
            .report(path, adapter, generation, &statuses)
            .await
            .status
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_meets_there_is_no_deadlock_and_every_law_holds() {
    let busy = Busy::spawn().await;
    let mut clusters = Vec::new();
    let mut pools = Vec::new();
    for number in 0..CLUSTERS {
        let cluster = busy.api.cluster(&format!("first-{number}")).await;
        pools.push(busy.api.nodepool(&cluster, "pool").await);
        clusters.push(cluster);
    }
    let world = Arc::new(World {
        api: busy.api.clone(),
        clusters: Mutex::new(clusters),
        pools: Mutex::new(pools),
    });
    let clients = (0..WORKERS).map(|worker| {
        let world = world.clone();
        async move {
            let mut random = Random::seeded(worker);
            let mut statuses = Vec::new();
            for _ in 0..OPERATIONS {
                statuses.push(world.step(&mut random).await);
            }
            statuses
        }
    });
    let statuses: Vec<_> = busy.at_once(clients).await.concat();
    assert!(statuses.iter().all(|status| *status < 500), "{statuses:?}");
    // Each kind of outcome took place, or the mix is not one.
    for expected in [200, 201, 202, 204, 404, 409] {
        assert!(
            statuses.contains(&expected),
            "no {expected} among {statuses:?}"
        );
    }
    let removed = busy.api.get("/audit?action=hard_delete&size=1").await;
    assert!(
        removed.body["total"].as_i64().unwrap() > 0,
        "nothing was ever finished"
    );
    busy.assert_sound().await;
}

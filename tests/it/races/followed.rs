//! A reader that follows the audit trail while many write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::Busy;
use crate::followers::Follower;
use crate::support::{Random, TestApi};

const WRITERS: u64 = 12;
const CHANGES: usize = 25;
const CLUSTERS: usize = 3;

/// One change of one of a few clusters or of a node pool that it has. Refusals are none of this test's business.
async fn change(api: &TestApi, clusters: &[String], random: &mut Random) {
    let cluster = &clusters[random.below(clusters.len())];
    let number = random.next();
    match random.below(10) {
        0..=3 => drop(api.patch(cluster, json!({"spec": {"n": number}})).await),
        4 | 5 => {
            let body =
                json!({"kind": "NodePool", "name": format!("p{}", number % 100_000), "spec": {}});
            drop(api.post(&format!("{cluster}/nodepools"), body).await);
        }
        6 | 7 => {
            let pools = api.get(&format!("{cluster}/nodepools?size=5")).await;
            if let Some(id) = pools.column("id").first() {
                let labels = json!({"labels": {"n": format!("{}", number % 1000)}});
                drop(
                    api.patch(&format!("{cluster}/nodepools/{id}"), labels)
                        .await,
                );
            }
        }
        8 => {
            let pools = api.get(&format!("{cluster}/nodepools?size=5")).await;
            if let Some(id) = pools.column("id").first() {
                drop(api.delete(&format!("{cluster}/nodepools/{id}")).await);
            }
        }
        // Only of one: the others are patched below.
        _ => drop(api.delete(&clusters[0]).await),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_gets_every_entry_once_while_twelve_write() {
    let busy = Busy::spawn().await;
    let mut clusters = Vec::new();
    for number in 0..CLUSTERS {
        clusters.push(busy.api.cluster(&format!("cluster-{number}")).await);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let (api, over) = (busy.api.clone(), is_over.clone());
    let following = tokio::spawn(async move {
        let mut follower = Follower::from_start();
        while !over.load(Ordering::Relaxed) {
            follower.read(&api).await;
        }
        follower
    });
    let writers = (0..WRITERS).map(|writer| {
        let (api, clusters) = (busy.api.clone(), clusters.clone());
        async move {
            let mut random = Random::seeded(writer);
            for _ in 0..CHANGES {
                change(&api, &clusters, &mut random).await;
            }
        }
    });
    busy.at_once(writers).await;
    is_over.store(true, Ordering::Relaxed);
    let mut follower = following.await.unwrap();
    let count = busy.api.count("SELECT count(*) FROM audit_entries").await;
    assert!(count > 50, "{count}");
    follower
        .read_until(&busy.api, usize::try_from(count).unwrap())
        .await;
    follower.assert_sound();
    busy.assert_sound().await;
}

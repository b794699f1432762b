//! Reads that come together share a statement; nobody may notice.

use futures_util::future::join_all;

use crate::support::TestApi;

#[tokio::test]
async fn reads_that_come_together_get_each_its_own_answer() {
    let api = TestApi::spawn().await;
    let mut clusters = Vec::new();
    for name in ["one", "two", "three"] {
        clusters.push(api.cluster(name).await);
    }
    let pool = api.nodepool(&clusters[0], "pool").await;
    let pool_id = pool.rsplit('/').next().unwrap();
    let asked = [
        (clusters[0].clone(), Some("one")),
        (clusters[1].clone(), Some("two")),
        // There is such a resource, but of another kind, or of another owner.
        (format!("/clusters/{pool_id}"), None),
        (format!("{}/nodepools/{pool_id}", clusters[1]), None),
        (clusters[2].clone(), Some("three")),
        (pool.clone(), Some("pool")),
        (format!("/resources/{pool_id}"), Some("pool")),
        (
            "/clusters/01990000-0000-7000-8000-000000000000".to_owned(),
            None,
        ),
    ];
    // More than fit into one statement, the same ones again and again.
    let answers = join_all(asked.iter().cycle().take(200).map(|(path, name)| async {
        let answer = api.get(path).await;
        (path.clone(), *name, answer)
    }));
    for (path, name, answer) in answers.await {
        match name {
            Some(name) => assert_eq!(answer.body["name"], name, "{path}"),
            None => assert_eq!(answer.status, 404, "{path}"),
        }
    }
}

#[tokio::test]
async fn a_read_shows_what_was_answered_before_it() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("first").await;
    for round in 1..=50 {
        let body = serde_json::json!({"labels": {"round": round.to_string()}});
        let others = join_all((0..8).map(|_| api.get(&cluster)));
        let ours = async {
            assert_eq!(api.patch(&cluster, body).await.status, 200);
            api.get(&cluster).await
        };
        let (_, answer) = tokio::join!(others, ours);
        assert_eq!(answer.body["labels"]["round"], round.to_string());
    }
}

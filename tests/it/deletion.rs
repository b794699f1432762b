//! DELETE: what it marks, what it refuses, what it removes, and when.

use serde_json::{Value, json};

use crate::support::{TestApi, root};

const NOBODY: &str = "019b7654-0000-7000-8000-000000000000";
const CLUSTER_ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];

#[tokio::test]
async fn deletion_marks_a_resource_and_counts_as_a_change() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let mut expected = api.get(&cluster).await.body;
    api.clock.advance(60);
    let answer = api.deleted(&cluster).await;
    for (name, value) in [
        ("generation", json!(2)),
        ("deleted_time", json!("2026-01-01T10:01:00Z")),
        ("deleted_by", json!("system@hyperfleet.local")),
        ("updated_time", json!("2026-01-01T10:01:00Z")),
        ("status", answer.body["status"].clone()),
    ] {
        expected[name] = value;
    }
    assert_eq!(answer.body, expected);
    let reconciled = answer.condition("Reconciled");
    assert_eq!(reconciled["status"], "False");
    assert_eq!(reconciled["observed_generation"], 2);
    assert_eq!(api.get(&cluster).await.body, expected);
}

#[tokio::test]
async fn many_deletions_at_once_count_once() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let deletions = (0..10).map(|_| api.delete(&cluster));
    let time_passes = async {
        loop {
            api.clock.advance(1);
            tokio::task::yield_now().await;
        }
    };
    let answers = tokio::select! {
        answers = futures_util::future::join_all(deletions) => answers,
        () = time_passes => unreachable!("it never ends"),
    };
    let found = api.get(&cluster).await;
    for answer in answers {
        assert_eq!((answer.status, &answer.body), (202, &found.body));
    }
    assert_eq!(found.body["generation"], 2);
}

#[tokio::test]
async fn what_is_not_there_cannot_be_deleted() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    for id in [NOBODY, "no-uuid"] {
        for (path, detail) in [
            (format!("/clusters/{id}"), "Cluster not found".to_owned()),
            (format!("/nodepools/{id}"), "NodePool not found".to_owned()),
            (
                format!("/resources/{id}"),
                format!("Resource with id='{id}' not found"),
            ),
            (
                format!("{cluster}/nodepools/{id}"),
                format!("NodePool with id='{id}' not found"),
            ),
            (
                format!("/clusters/{id}/nodepools/{id}"),
                format!("Cluster with id='{id}' not found"),
            ),
        ] {
            let answer = api.delete(&path).await;
            assert_eq!(answer.problem(), (404, "NTF-001"), "{path}");
            assert_eq!(answer.detail(), detail, "{path}");
        }
    }
}

/// Adapters that report whole seconds send both within one. The second report must not be lost: no other would follow.
#[tokio::test]
async fn finalized_counts_in_the_second_of_an_earlier_report() {
    let api = TestApi::spawn_with(&[root("Plain", "plains", &["dns"])]).await;
    let plain = api.make("/plains", "Plain", "going").await;
    api.deleted(&plain).await;
    let waits = api
        .report(&plain, "dns", 2, &[("Finalized", "False")])
        .await;
    assert_eq!(waits.status, 201);
    // Anything but Finalized=True leaves the stored report, as in the Go HyperFleet API.
    let other = [("Finalized", "False"), ("Health", "False")];
    let other = api.report(&plain, "dns", 2, &other).await;
    assert_eq!((other.status, &other.body), (201, &waits.body));
    let done = api.report(&plain, "dns", 2, &[("Finalized", "True")]).await;
    assert_eq!(done.status, 201, "{}", done.body);
    assert_eq!(api.get(&plain).await.problem(), (404, "NTF-001"));
}

#[tokio::test]
async fn a_hard_delete_leaves_no_rows() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let labels = json!({"labels": {"a": "b"}, "spec": {"c": 1}});
    assert_eq!(api.patch(&cluster, labels).await.status, 200);
    api.report(&cluster, "voluntary", 1, &[]).await;
    assert!(api.rows().await >= 3);
    api.deleted(&cluster).await;
    api.finalize(&cluster, &CLUSTER_ADAPTERS, 3).await;
    assert_eq!(api.rows().await, 0);
    for path in [
        cluster.clone(),
        format!("{cluster}/statuses"),
        format!("{cluster}/nodepools"),
    ] {
        assert_eq!(api.get(&path).await.problem(), (404, "NTF-001"), "{path}");
    }
    assert_eq!(api.delete(&cluster).await.status, 404);
    assert_eq!(api.report(&cluster, "dns", 3, &[]).await.status, 404);
}

#[tokio::test]
async fn a_voluntary_report_adds_conditions_until_the_deletion() {
    let api = TestApi::spawn_with(&[root("Channel", "channels", &[])]).await;
    let channel = api.make("/channels", "Channel", "stable").await;
    assert_eq!(api.report(&channel, "curious", 1, &[]).await.status, 201);
    let found = api.get(&channel).await;
    for kind in ["Reconciled", "LastKnownReconciled"] {
        assert_eq!(found.condition(kind)["status"], "False", "{kind}");
    }
    api.deleted(&channel).await;
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn a_delete_reads_no_body() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let answer = api.send_bytes("DELETE", &cluster, "{nonsense").await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_ne!(answer.body["deleted_time"], Value::Null);
}

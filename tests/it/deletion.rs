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
async fn a_finalizing_resource_says_what_it_waits_for() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    for adapter in CLUSTER_ADAPTERS {
        api.report(&cluster, adapter, 1, &[]).await;
    }
    api.deleted(&cluster).await;
    api.finalize(&cluster, &["dns"], 2).await;
    let found = api.get(&cluster).await;
    let reconciled = found.condition("Reconciled");
    assert_eq!(reconciled["status"], "False");
    assert_eq!(reconciled["reason"], "ReconciledMissingAdapters");
    assert_eq!(
        reconciled["message"],
        "Required adapters not reporting Finalized=True: [hypershift, pullsecret, validation]. \
         Currently reporting: [dns, hypershift, pullsecret, validation]"
    );
}

#[tokio::test]
async fn deleting_again_changes_nothing() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let nodepool = api.nodepool(&cluster, "workers").await;
    api.deleted(&cluster).await;
    let before = (api.get(&cluster).await.body, api.get(&nodepool).await.body);
    api.clock.advance(60);
    for path in [&cluster, &nodepool, &cluster] {
        let again = api.deleted(path).await;
        assert_eq!(again.body, api.get(path).await.body, "{path}");
    }
    let after = (api.get(&cluster).await.body, api.get(&nodepool).await.body);
    assert_eq!(after, before);
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

#[tokio::test]
async fn a_finalizing_resource_cannot_be_patched() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let deleted = api.deleted(&cluster).await;
    for body in [
        json!({"spec": {"a": 1}}),
        json!({"spec": {}}),
        json!({"labels": {"a": "b"}}),
        json!({"references": {}}),
    ] {
        let answer = api.patch(&cluster, body.clone()).await;
        assert_eq!(answer.problem(), (409, "CNF-003"), "{body}");
        assert_eq!(answer.body["title"], "State Conflict");
        assert_eq!(
            answer.detail(),
            format!("Cluster '{}' is marked for deletion", deleted.id())
        );
    }
    assert_eq!(api.get(&cluster).await.body, deleted.body);
}

#[tokio::test]
async fn only_finalized_at_the_current_generation_counts() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    api.finalize(&cluster, &CLUSTER_ADAPTERS, 1).await;
    api.deleted(&cluster).await;
    api.clock.advance(1);
    api.finalize(&cluster, &CLUSTER_ADAPTERS[..3], 2).await;
    assert!(
        api.has(&cluster).await,
        "one adapter spoke of the generation before"
    );
    let unfinished = api
        .report(&cluster, "hypershift", 2, &[("Finalized", "False")])
        .await;
    assert_eq!(unfinished.status, 201);
    assert!(api.has(&cluster).await, "one adapter is not done");
    api.clock.advance(1);
    api.finalize(&cluster, &["hypershift"], 2).await;
    assert!(!api.has(&cluster).await);
}

#[tokio::test]
async fn whether_a_finalized_adapter_is_available_does_not_matter() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    api.deleted(&cluster).await;
    for (adapter, available) in CLUSTER_ADAPTERS
        .iter()
        .zip(["False", "Unknown", "True", "Unknown"])
    {
        let statuses = [("Available", available), ("Finalized", "True")];
        let answer = api.report(&cluster, adapter, 2, &statuses).await;
        assert_eq!(answer.status, 201, "{adapter}");
    }
    assert!(!api.has(&cluster).await);
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
async fn finalized_stays_in_the_second_of_a_later_report() {
    let api = TestApi::spawn_with(&[root("Plain", "plains", &["dns", "other"])]).await;
    let plain = api.make("/plains", "Plain", "going").await;
    // Not being deleted: the stored report stays.
    api.report(&plain, "dns", 1, &[]).await;
    let early = api.report(&plain, "dns", 1, &[("Finalized", "True")]).await;
    assert_eq!(early.status, 201);
    let reports = api.get(&format!("{plain}/statuses")).await;
    assert_eq!(
        reports.body["items"][0]["conditions"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    api.deleted(&plain).await;
    for finalized in ["True", "False"] {
        let report = api
            .report(&plain, "dns", 2, &[("Finalized", finalized)])
            .await;
        assert_eq!(report.status, 201);
    }
    let last = api
        .report(&plain, "other", 2, &[("Finalized", "True")])
        .await;
    assert_eq!(last.status, 201);
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
async fn a_kind_without_adapters_has_no_conditions_and_goes_at_once() {
    let api = TestApi::spawn_with(&[root("Channel", "channels", &[])]).await;
    let channel = api.make("/channels", "Channel", "stable").await;
    assert_eq!(
        api.get(&channel).await.body["status"]["conditions"],
        json!([])
    );
    let deleted = api.deleted(&channel).await;
    assert_eq!(deleted.body["generation"], 2);
    assert_eq!(deleted.body["deleted_time"], "2026-01-01T10:00:00Z");
    assert_eq!(deleted.body["deleted_by"], "system@hyperfleet.local");
    assert_eq!(api.get(&channel).await.problem(), (404, "NTF-001"));
    let again = api.delete(&channel).await;
    assert_eq!(
        (again.problem(), again.detail()),
        ((404, "NTF-001"), "Channel not found")
    );
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn a_voluntary_report_gives_conditions_and_goes_with_its_resource() {
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
async fn a_finalized_report_of_any_adapter_finishes_what_is_done() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let deleted = api.deleted(&cluster).await;
    api.finalize(&cluster, &CLUSTER_ADAPTERS[..3], 2).await;
    api.finalize(&cluster, &["voluntary"], 2).await;
    assert_eq!(
        api.get(&cluster).await.body["deleted_time"],
        deleted.body["deleted_time"]
    );
    let last = [("Finalized", "True"), ("Available", "False")];
    let answer = api.report(&cluster, "hypershift", 2, &last).await;
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.body["adapter"], "hypershift",
        "the report is the answer"
    );
    assert!(!api.has(&cluster).await);
}

#[tokio::test]
async fn a_delete_reads_no_body() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let answer = api.send_bytes("DELETE", &cluster, "{nonsense").await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_ne!(answer.body["deleted_time"], Value::Null);
}

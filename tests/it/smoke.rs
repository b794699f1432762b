use serde_json::json;

use crate::support::TestApi;

#[tokio::test]
async fn a_cluster_is_reconciled_once_all_its_adapters_report() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("first").await;
    for adapter in ["validation", "dns", "pullsecret"] {
        assert_eq!(api.report(&cluster, adapter, 1, &[]).await.status, 201);
        assert_eq!(
            api.get(&cluster).await.condition("Reconciled")["status"],
            "False"
        );
    }
    assert_eq!(api.report(&cluster, "hypershift", 1, &[]).await.status, 201);
    let found = api.get(&cluster).await;
    assert_eq!(found.condition("Reconciled")["status"], "True");
    assert_eq!(found.body["name"], json!("first"));
}

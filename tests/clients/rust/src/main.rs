//! A cluster's life through a client of progenitor, made from the plain document.
//!
//! ```text
//! hyperfleet-clients HOST_URL
//! ```

#[allow(clippy::all, clippy::pedantic, dead_code, unused_imports)]
mod client {
    include!(concat!(env!("OUT_DIR"), "/client.rs"));
}

use client::types::{
    AdapterStatusCreateRequest, ClusterCreateRequest, ClusterPatchRequest, ForceDeleteRequest,
};
use client::{Client, Error};
use serde_json::{Value, from_value, json};

const ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let host = std::env::args().nth(1).ok_or("HOST_URL is missing")?;
    let api = Client::new(&host);

    let body = json!({"kind": "Cluster", "name": "progenitor", "spec": {"region": "eu"}});
    let body: ClusterCreateRequest = from_value(body)?;
    let created = api.post_cluster(&body).await?.into_inner();
    assert_eq!(created.spec["region"], "eu");
    let id = created.id.ok_or("the cluster has no id")?;
    assert_refused(api.post_cluster(&body).await, 409);

    let search = Some("name = 'progenitor'");
    let list = api
        .get_clusters(
            None, None, None, None, None, None, None, None, None, None, search, None,
        )
        .await?
        .into_inner();
    assert_eq!((list.total, list.items[0].id.as_ref()), (1, Some(&id)));
    let change: ClusterPatchRequest = from_value(json!({"spec": {"region": "us"}}))?;
    let patched = api.patch_cluster_by_id(&id, &change).await?;
    assert_eq!(patched.generation.get(), 2);

    for adapter in ADAPTERS {
        let reported = api.put_cluster_statuses(&id, &report(adapter, 2)?).await?;
        assert_eq!(
            (reported.status().as_u16(), &*reported.adapter),
            (201, adapter)
        );
    }
    // A report that is discarded has no body, and the document names one success only.
    match api.put_cluster_statuses(&id, &report("dns", 7)?).await {
        Err(Error::UnexpectedResponse(answer)) => assert_eq!(answer.status(), 204),
        other => panic!("not discarded: {}", other.is_ok()),
    }
    let done = api.get_cluster_by_id(&id, None, None, None, None).await?;
    assert_eq!(done.status.conditions[0].status.to_string(), "True");
    let reports = api.get_cluster_statuses(&id, None, None, None).await?;
    assert_eq!(reports.total, 4);

    let deleted = api.delete_cluster_by_id(&id).await?;
    assert!(deleted.deleted_time.is_some());
    let reason: ForceDeleteRequest = from_value(json!({"reason": "the test is over"}))?;
    assert_eq!(api.force_delete_cluster(&id, &reason).await?.status(), 204);
    assert_refused(
        api.get_cluster_by_id(&id, None, None, None, None).await,
        404,
    );
    println!("clients: progenitor: passed");
    Ok(())
}

fn report(adapter: &str, generation: i32) -> Result<AdapterStatusCreateRequest, serde_json::Error> {
    let conditions = ["Available", "Applied", "Health"];
    let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
    from_value::<AdapterStatusCreateRequest>(json!({
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": chrono::Utc::now(),
        "conditions": Value::from(conditions.to_vec()),
    }))
}

fn assert_refused<T, E>(answer: Result<T, Error<E>>, status: u16) {
    let found = answer.err().and_then(|error| error.status());
    assert_eq!(found.map(|status| status.as_u16()), Some(status));
}

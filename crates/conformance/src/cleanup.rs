//! Removes the resources of a run.

use serde_json::{Value, json};

use crate::client::ROOT;
use crate::subject::{LABEL, Subject};
use crate::verdict::Verdict;

/// Passes over remaining search results: one for resources whose response never came, and one to confirm that
/// they are gone.
const SWEEPS: usize = 3;

/// Deletes every resource of the run; returns the paths of those that remain.
pub(crate) async fn clean_up(api: &Subject) -> Verdict<Vec<String>> {
    let mut left = Vec::new();
    for path in api.take_created() {
        if !remove(api, &path).await? {
            left.push(path);
        }
    }
    for _ in 0..SWEEPS {
        let found = still_there(api).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        left.clear();
        for path in found {
            if !remove(api, &path).await? {
                left.push(path);
            }
        }
    }
    Ok(left)
}

/// Clusters with the run's label, including finalizing ones; node pools go with them.
async fn still_there(api: &Subject) -> Verdict<Vec<String>> {
    let search = format!(
        "labels.{LABEL} = '{}' or name like '{}-%'",
        api.run, api.run
    );
    let parameters = [
        ("search", search.as_str()),
        ("size", "100"),
        ("includeDeleted", "true"),
    ];
    let list = api.list("/clusters", &parameters).await?;
    let paths = list
        .items()?
        .iter()
        .filter_map(|item| item["href"].as_str()?.strip_prefix(ROOT));
    Ok(paths.map(str::to_owned).collect())
}

/// Deletes one resource and all below it, without waiting for adapters. Returns whether it is gone.
async fn remove(api: &Subject, path: &str) -> Verdict<bool> {
    let deleted = api.delete(path).await?;
    if deleted.status == 404 {
        return Ok(true);
    }
    let reason = json!({"reason": format!("conformance run {}", api.run)});
    let forced = api.post(&format!("{path}/force-delete"), reason).await?;
    if matches!(forced.status, 204 | 404) {
        return Ok(true);
    }
    // Where force-delete is not allowed, adapters complete the deletion.
    finalize(api, path, &deleted.body).await?;
    Ok(api.get(path).await?.status == 404)
}

/// Reports `Finalized=True` for every required adapter, for children before their owner.
async fn finalize(api: &Subject, path: &str, resource: &Value) -> Verdict {
    if resource["kind"] == "Cluster" {
        let list = api
            .get(&format!("{path}/nodepools?size=100&includeDeleted=true"))
            .await?;
        for child in list.items()? {
            let id = child["id"].as_str().unwrap_or_default();
            report(
                api,
                &format!("/nodepools/{id}"),
                child,
                &api.target.nodepool_adapters,
            )
            .await?;
        }
        return report(api, path, resource, &api.target.cluster_adapters).await;
    }
    report(api, path, resource, &api.target.nodepool_adapters).await
}

async fn report(api: &Subject, path: &str, resource: &Value, adapters: &[String]) -> Verdict {
    let generation = resource["generation"].as_i64().unwrap_or(1);
    for adapter in adapters {
        let finalized = [("Available", "False"), ("Finalized", "True")];
        api.report(path, adapter, generation, &finalized).await?;
    }
    Ok(())
}

//! Node pools and the clusters that own them.

use serde_json::json;

use crate::check::{Check, check};
use crate::client::ROOT;
use crate::subject::Subject;
use crate::verdict::{Failure, Verdict};

const SOURCE: &str = "docs/reference/api.md#resources";
const FINALIZED: &[(&str, &str)] = &[("Available", "False"), ("Finalized", "True")];

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "children.owner",
            "A child names its owner and has a nested href",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                let owner = json!({"href": format!("{ROOT}{}", cluster.path), "id": cluster.id, "kind": "Cluster"});
                made.answer
                    .has("/owner_references", owner)?
                    .has("/href", format!("{ROOT}{}", made.path))?;
            }
        ),
        check!(
            "children.flat",
            "The flat and the nested route answer alike",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                api.report(&made.path, "any", 1, &[]).await?.status(201)?;
                let nested = api.get(&made.path).await?;
                for list in ["/nodepools", "/resources"] {
                    let flat = api.get(&format!("{list}/{}", made.id)).await?;
                    flat.status(200)?.has("", nested.body.clone())?;
                    api.get(&format!("{list}/{}/statuses", made.id))
                        .await?
                        .has("/total", 1)?;
                }
            }
        ),
        check!(
            "children.flat-patch",
            "PATCH and PUT statuses also work on the flat route",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                let flat = format!("/nodepools/{}", made.id);
                api.patch(&flat, json!({"spec": {"replicas": 3}}))
                    .await?
                    .status(200)?
                    .has("/generation", 2)?;
                api.report(&flat, "any", 2, &[]).await?.status(201)?;
                api.get(&format!("{}/statuses", made.path))
                    .await?
                    .has("/total", 1)?;
            }
        ),
        check!(
            "children.other-owner",
            "A child is not found below another owner",
            SOURCE,
            |api| {
                let (one, two) = (api.cluster().await?, api.cluster().await?);
                let made = api.nodepool(&one).await?;
                let path = format!("{}/nodepools/{}", two.path, made.id);
                api.get(&path).await?.problem(404, "NTF-001")?;
                api.patch(&path, json!({"spec": {"a": 1}}))
                    .await?
                    .problem(404, "NTF-001")?;
                api.delete(&path).await?.problem(404, "NTF-001")?;
                api.report(&path, "any", 1, &[])
                    .await?
                    .problem(404, "NTF-001")?;
                api.post(
                    &format!("{path}/force-delete"),
                    json!({"reason": "conformance"}),
                )
                .await?
                .problem(404, "NTF-001")?;
                api.get(&made.path)
                    .await?
                    .has("", made.answer.body.clone())?;
            }
        ),
        check!(
            "children.no-owner",
            "A child can't be made or listed below an owner that is not there",
            SOURCE,
            |api| {
                let detail = "Cluster with id='nobody' not found";
                let answer = api
                    .post("/clusters/nobody/nodepools", api.body("NodePool"))
                    .await?;
                answer.problem(404, "NTF-001")?.detail(detail)?;
                // The parameters of a list are read after its owner, the body of a child before.
                for query in ["", "?page=x", "?order=nonsense"] {
                    api.get(&format!("/clusters/nobody/nodepools{query}"))
                        .await?
                        .problem(404, "NTF-001")?
                        .detail(detail)?;
                }
                api.post("/clusters/nobody/nodepools", json!({"kind": "NodePool"}))
                    .await?
                    .status(400)?;
            }
        ),
        check!(
            "children.name-scope",
            "Names of children are unique below one owner",
            SOURCE,
            |api| {
                let (one, two) = (api.cluster().await?, api.cluster().await?);
                let body = api.body("NodePool");
                api.make(&format!("{}/nodepools", one.path), body.clone())
                    .await?;
                let again = api.post(&format!("{}/nodepools", one.path), &body).await?;
                again.problem(409, "CNF-001")?;
                api.make(&format!("{}/nodepools", two.path), body).await?;
            }
        ),
        check!(
            "children.name-long",
            "A node pool's name has at most 15 characters",
            SOURCE,
            |api| {
                let cluster = api.cluster().await?;
                let mut body = api.body("NodePool");
                body["name"] = json!("x".repeat(16));
                let answer = api
                    .post(&format!("{}/nodepools", cluster.path), &body)
                    .await?;
                answer
                    .problem(400, "VAL-000")?
                    .detail("name must be at most 15 characters")?;
            }
        ),
        check!(
            "children.list",
            "A nested list contains only the owner's children",
            SOURCE,
            |api| {
                let (one, two) = (api.cluster().await?, api.cluster().await?);
                let made = api.nodepool(&one).await?;
                api.nodepool(&two).await?;
                let list = api.get(&format!("{}/nodepools", one.path)).await?;
                list.names_are(&[made.name.as_str()])?.has("/total", 1)?;
            }
        ),
        check!(
            "children.cascade",
            "DELETE of a cluster deletes its node pools with it",
            SOURCE,
            |api| {
                needs_adapters(api)?;
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                let deleted = api.delete(&cluster.path).await?;
                let child = api.get(&made.path).await?;
                child
                    .status(200)?
                    .has("/generation", 2)?
                    .has("/deleted_time", deleted.at("/deleted_time").clone())?;
                child.has("/deleted_by", deleted.at("/deleted_by").clone())?;
            }
        ),
        check!(
            "children.finalizing-owner",
            "A finalizing owner gets no more children: 409 CNF-003",
            SOURCE,
            |api| {
                api.adapters()?;
                let cluster = api.cluster().await?;
                api.delete(&cluster.path).await?.status(202)?;
                let answer = api
                    .post(&format!("{}/nodepools", cluster.path), api.body("NodePool"))
                    .await?;
                answer
                    .problem(409, "CNF-003")?
                    .detail(&format!("Cluster '{}' is marked for deletion", cluster.id))?;
            }
        ),
        check!(
            "children.waiting",
            "A finalized owner waits for its children and says so",
            SOURCE,
            |api| {
                needs_adapters(api)?;
                let cluster = api.cluster().await?;
                api.nodepool(&cluster).await?;
                api.delete(&cluster.path).await?.status(202)?;
                api.report_all(&cluster.path, api.adapters()?, 2, FINALIZED)
                    .await?;
                let found = api.get(&cluster.path).await?;
                found
                    .status(200)?
                    .condition_has("Reconciled", "status", "False")?;
                found.condition_has("Reconciled", "reason", "ReconciledWaitingForChildren")?;
            }
        ),
        check!(
            "children.last",
            "A finalized owner goes with its last child",
            SOURCE,
            |api| {
                needs_adapters(api)?;
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                api.delete(&cluster.path).await?.status(202)?;
                api.report_all(&cluster.path, api.adapters()?, 2, FINALIZED)
                    .await?;
                api.report_all(&made.path, &api.target.nodepool_adapters, 2, FINALIZED)
                    .await?;
                api.get(&cluster.path).await?.problem(404, "NTF-001")?;
            }
        ),
        check!(
            "children.child-first",
            "An owner whose children are gone goes with its last adapter",
            SOURCE,
            |api| {
                needs_adapters(api)?;
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                api.delete(&cluster.path).await?.status(202)?;
                api.report_all(&made.path, &api.target.nodepool_adapters, 2, FINALIZED)
                    .await?;
                api.get(&format!("/nodepools/{}", made.id))
                    .await?
                    .problem(404, "NTF-001")?;
                api.get(&cluster.path).await?.status(200)?;
                api.report_all(&cluster.path, api.adapters()?, 2, FINALIZED)
                    .await?;
                api.get(&cluster.path).await?.problem(404, "NTF-001")?;
            }
        ),
        check!(
            "children.alone",
            "DELETE of a node pool leaves its cluster as it is",
            SOURCE,
            |api| {
                needs_adapters(api)?;
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                api.delete(&made.path).await?.status(202)?;
                api.report_all(&made.path, &api.target.nodepool_adapters, 2, FINALIZED)
                    .await?;
                api.get(&made.path).await?.problem(404, "NTF-001")?;
                api.get(&cluster.path)
                    .await?
                    .status(200)?
                    .has("/generation", 1)?;
            }
        ),
        check!(
            "children.force",
            "Force-delete of a cluster also removes its node pools",
            SOURCE,
            |api| {
                needs_adapters(api)?;
                let cluster = api.cluster().await?;
                let made = api.nodepool(&cluster).await?;
                api.delete(&cluster.path).await?.status(202)?;
                let reason = json!({"reason": "conformance"});
                api.post(&format!("{}/force-delete", cluster.path), reason)
                    .await?
                    .status(204)?;
                api.get(&format!("/nodepools/{}", made.id))
                    .await?
                    .problem(404, "NTF-001")?;
            }
        ),
    ]
}

fn needs_adapters(api: &Subject) -> Verdict {
    if api.target.nodepool_adapters.is_empty() {
        return Err(Failure::Skipped(
            "node pools have no required adapters".to_owned(),
        ));
    }
    api.adapters().map(drop)
}

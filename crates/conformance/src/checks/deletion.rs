//! Deletion: soft, final and forced.

use serde_json::json;

use crate::check::{Check, check};

const SOURCE: &str = "docs/reference/api.md#resources";
const FINALIZED: &[(&str, &str)] = &[("Available", "False"), ("Finalized", "True")];

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "delete.answer",
            "DELETE answers 202 with the resource, its deleted_time and the next generation",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                let answer = api.delete(&made.path).await?;
                answer
                    .status(202)?
                    .has("/id", made.id.as_str())?
                    .has("/generation", 2)?;
                answer.text("/deleted_time")?;
                answer.text("/deleted_by")?;
            }
        ),
        check!(
            "delete.finalizing",
            "A finalizing resource is still answered",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                let deleted = api.delete(&made.path).await?;
                let found = api.get(&made.path).await?;
                found
                    .status(200)?
                    .has("/deleted_time", deleted.at("/deleted_time").clone())?
                    .has("/generation", 2)?;
                found.condition_has("Reconciled", "status", "False")?;
            }
        ),
        check!(
            "delete.again",
            "A repeated DELETE changes nothing",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                let first = api.delete(&made.path).await?;
                let second = api.delete(&made.path).await?;
                second
                    .status(202)?
                    .has("/generation", 2)?
                    .has("/deleted_time", first.at("/deleted_time").clone())?;
            }
        ),
        check!(
            "delete.missing",
            "DELETE of a missing resource answers 404 NTF-001",
            SOURCE,
            |api| {
                api.delete("/clusters/nobody")
                    .await?
                    .problem(404, "NTF-001")?;
            }
        ),
        check!(
            "delete.no-patch",
            "A finalizing resource can't be patched: 409 CNF-003",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                let answer = api.patch(&made.path, json!({"spec": {"a": 1}})).await?;
                answer
                    .problem(409, "CNF-003")?
                    .detail(&format!("Cluster '{}' is marked for deletion", made.id))?;
            }
        ),
        check!(
            "delete.message",
            "A finalizing resource says which adapters have not finalized",
            SOURCE,
            |api| {
                let mut missing = api.adapters()?.to_vec();
                missing.sort();
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                let message = format!(
                    "Required adapters not reporting Finalized=True: [{}]. Currently reporting: []",
                    missing.join(", ")
                );
                api.get(&made.path)
                    .await?
                    .condition_has("Reconciled", "message", message)?;
            }
        ),
        check!(
            "delete.final",
            "The last required adapter's Finalized=True removes the resource in the same request",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                for adapter in adapters {
                    api.get(&made.path).await?.status(200)?;
                    api.report(&made.path, adapter, 2, FINALIZED)
                        .await?
                        .status(201)?;
                }
                api.get(&made.path).await?.problem(404, "NTF-001")?;
                api.get(&format!("{}/statuses", made.path))
                    .await?
                    .problem(404, "NTF-001")?;
                api.delete(&made.path).await?.problem(404, "NTF-001")?;
            }
        ),
        check!(
            "delete.old-finalized",
            "Finalized=True of an older generation doesn't count",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.report_all(&made.path, adapters, 1, FINALIZED).await?;
                api.delete(&made.path).await?.status(202)?;
                api.report_all(&made.path, adapters, 1, FINALIZED).await?;
                api.get(&made.path)
                    .await?
                    .status(200)?
                    .has("/generation", 2)?;
            }
        ),
        check!(
            "delete.not-before",
            "Finalized=True doesn't remove a resource that nobody deleted",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.report_all(&made.path, adapters, 1, FINALIZED).await?;
                api.get(&made.path)
                    .await?
                    .status(200)?
                    .lacks("/deleted_time")?;
            }
        ),
        check!(
            "delete.generic",
            "DELETE /resources/{id} deletes the same resource",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&format!("/resources/{}", made.id))
                    .await?
                    .status(202)?;
                api.get(&made.path).await?.text("/deleted_time")?;
            }
        ),
        check!(
            "force.answer",
            "Force-delete of a finalizing resource answers 204 and removes it",
            SOURCE,
            |api| {
                api.adapters()?;
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                let answer = api
                    .post(
                        &format!("{}/force-delete", made.path),
                        json!({"reason": "conformance"}),
                    )
                    .await?;
                answer
                    .status(204)?
                    .expect(answer.bytes.is_empty(), "no body")?;
                api.get(&made.path).await?.problem(404, "NTF-001")?;
            }
        ),
        check!(
            "force.active",
            "Force-delete of an active resource answers 409 CNF-003",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api
                    .post(
                        &format!("{}/force-delete", made.path),
                        json!({"reason": "conformance"}),
                    )
                    .await?;
                answer
                    .problem(409, "CNF-003")?
                    .detail(&format!("Cluster '{}' is not in Finalizing state", made.id))?;
            }
        ),
        check!(
            "force.reason",
            "Force-delete needs a reason of 1 to 1024 characters",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let path = format!("{}/force-delete", made.path);
                for body in ["{}", r#"{"reason": ""}"#, r#"{"reason": null}"#] {
                    api.post(&path, body)
                        .await?
                        .problem(400, "VAL-000")?
                        .detail("reason is required")?;
                }
                let long = json!({"reason": "é".repeat(1025)});
                api.post(&path, long)
                    .await?
                    .problem(400, "VAL-000")?
                    .detail("reason must be at most 1024 characters")?;
            }
        ),
        check!(
            "force.missing",
            "Force-delete of a missing resource answers 404 NTF-001",
            SOURCE,
            |api| {
                let answer = api
                    .post(
                        "/clusters/nobody/force-delete",
                        json!({"reason": "conformance"}),
                    )
                    .await?;
                answer.problem(404, "NTF-001")?;
            }
        ),
    ]
}

//! Patches and generations.

use serde_json::json;

use crate::check::{Check, check};

const SOURCE: &str = "docs/reference/api.md#patch";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "patch.spec",
            "A patch replaces the spec whole and raises the generation by one",
            SOURCE,
            |api| {
                let made = api
                    .cluster_with(&json!({}), json!({"a": 1, "b": 2}))
                    .await?;
                let answer = api.patch(&made.path, json!({"spec": {"a": 3}})).await?;
                answer
                    .status(200)?
                    .has("/spec", json!({"a": 3}))?
                    .has("/generation", 2)?;
                api.get(&made.path)
                    .await?
                    .has("/spec", json!({"a": 3}))?
                    .has("/generation", 2)?;
            }
        ),
        check!(
            "patch.labels",
            "A patch replaces the labels whole and raises the generation by one",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api
                    .patch(&made.path, json!({"labels": {"team": "a"}}))
                    .await?;
                answer
                    .status(200)?
                    .has("/labels", json!({"team": "a"}))?
                    .has("/generation", 2)?;
                answer.has("/spec", json!({}))?;
            }
        ),
        check!(
            "patch.both",
            "A patch of spec and labels raises the generation once",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api
                    .patch(&made.path, json!({"spec": {"a": 1}, "labels": {"b": "2"}}))
                    .await?;
                answer.status(200)?.has("/generation", 2)?;
            }
        ),
        check!(
            "patch.same",
            "A patch that changes nothing keeps generation and updated_time",
            SOURCE,
            |api| {
                let made = api
                    .cluster_with(&json!({}), json!({"a": 1, "b": [1, 2]}))
                    .await?;
                let before = api.get(&made.path).await?;
                let body = json!({"spec": {"b": [1, 2], "a": 1}, "labels": before.at("/labels")});
                let answer = api.patch(&made.path, body).await?;
                answer.status(200)?.has("/generation", 1)?;
                answer.has("/updated_time", before.at("/updated_time").clone())?;
            }
        ),
        check!(
            "patch.array-order",
            "The order of an array's elements counts",
            SOURCE,
            |api| {
                let made = api.cluster_with(&json!({}), json!({"b": [1, 2]})).await?;
                let answer = api
                    .patch(&made.path, json!({"spec": {"b": [2, 1]}}))
                    .await?;
                answer.status(200)?.has("/generation", 2)?;
            }
        ),
        check!(
            "patch.number-spelling",
            "Another spelling of a number changes nothing",
            SOURCE,
            |api| {
                let made = api.cluster_with(&json!({}), json!({"n": 1})).await?;
                let answer = api.patch(&made.path, r#"{"spec": {"n": 1.0}}"#).await?;
                answer.status(200)?.has("/generation", 1)?;
            }
        ),
        check!(
            "patch.clear-labels",
            "Labels {} removes all labels",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api.patch(&made.path, json!({"labels": {}})).await?;
                answer.status(200)?.has("/generation", 2)?;
                let labels = answer.at("/labels");
                answer.expect(*labels == json!({}), "no labels")?;
            }
        ),
        check!(
            "patch.empty",
            "A patch without a field answers 400 VAL-005",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                for body in ["{}", "null", r#"{"labels": null}"#] {
                    let answer = api.patch(&made.path, body).await?;
                    answer
                        .problem(400, "VAL-005")?
                        .detail("at least one field must be provided for update")?;
                }
            }
        ),
        check!(
            "patch.unknown-member",
            "A member that a patch doesn't know answers 400 VAL-006",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                for member in ["name", "kind", "generation", "tenancy", "nonsense"] {
                    let answer = api
                        .patch(&made.path, json!({member: "x", "spec": {"a": 1}}))
                        .await?;
                    answer.problem(400, "VAL-006")?;
                }
                api.get(&made.path).await?.has("/generation", 1)?;
            }
        ),
        check!(
            "patch.null-spec",
            "A patch with spec null is refused",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.patch(&made.path, json!({"spec": null}))
                    .await?
                    .status(400)?;
            }
        ),
        check!(
            "patch.bad-labels",
            "A patch checks labels as POST does",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api
                    .patch(&made.path, json!({"labels": {"team": "a b"}}))
                    .await?;
                answer.problem(400, "VAL-000")?;
            }
        ),
        check!(
            "patch.missing",
            "A patch of a missing resource answers 404 NTF-001",
            SOURCE,
            |api| {
                let path = "/clusters/019b7654-0000-7000-8000-000000000000";
                api.patch(path, json!({"spec": {}}))
                    .await?
                    .problem(404, "NTF-001")?;
            }
        ),
        check!(
            "patch.conditions",
            "A patch makes Reconciled False at the new generation and leaves LastKnownReconciled",
            SOURCE,
            |api| {
                let adapters = api.adapters()?;
                let made = api.cluster().await?;
                api.report_all(&made.path, adapters, 1, &[]).await?;
                api.get(&made.path)
                    .await?
                    .condition_has("Reconciled", "status", "True")?;
                let answer = api.patch(&made.path, json!({"spec": {"a": 1}})).await?;
                answer.condition_has("Reconciled", "status", "False")?;
                answer.condition_has("Reconciled", "observed_generation", 2)?;
                answer.condition_has("LastKnownReconciled", "status", "True")?;
                answer.condition_has("LastKnownReconciled", "observed_generation", 1)?;
            }
        ),
        check!(
            "patch.generic",
            "PATCH /resources/{id} changes the same resource",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api
                    .patch(
                        &format!("/resources/{}", made.id),
                        json!({"spec": {"a": 1}}),
                    )
                    .await?;
                answer.status(200)?.has("/generation", 2)?;
                api.get(&made.path).await?.has("/spec", json!({"a": 1}))?;
            }
        ),
        check!(
            "patch.null-label",
            "A label with the value null answers 400 VAL-000",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let body = json!({"labels": {"team": null}});
                let answer = api.patch(&made.path, body).await?;
                answer.problem(400, "VAL-000")?;
            }
        ),
    ]
}

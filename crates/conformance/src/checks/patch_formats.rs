//! Patches of other media types than plain JSON, which the older service does not look at.

use serde_json::json;

use crate::check::{Check, check};

const SOURCE: &str = "docs/reference/api.md#patch";
const MERGE: &str = "application/merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "patch.media-type",
            "Another media type answers 415 VAL-010 with Accept-Patch",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let body = json!({"spec": {"a": 1}});
                let answer = api.patch_as("text/plain", &made.path, body).await?;
                answer.problem(415, "VAL-010")?;
                let types = answer.header("accept-patch").unwrap_or_default();
                let are_named = types.contains(MERGE) && types.contains(OPERATIONS);
                answer.expect(are_named, "Accept-Patch lists the formats")?;
            }
        ),
        check!(
            "patch.merge",
            "A merge patch merges objects and removes members that are null",
            SOURCE,
            |api| {
                let made = api
                    .cluster_with(&json!({"team": "a"}), json!({"a": {"b": 1}, "c": [1, 2]}))
                    .await?;
                let body = json!({"spec": {"a": {"d": 2}, "c": [3]}, "labels": {"team": null}});
                let answer = api.patch_as(MERGE, &made.path, body).await?;
                answer.status(200)?.has("/generation", 2)?;
                answer.has("/spec", json!({"a": {"b": 1, "d": 2}, "c": [3]}))?;
                answer.lacks("/labels/team")?;
            }
        ),
        check!(
            "patch.operations",
            "A JSON patch applies its operations in their order",
            SOURCE,
            |api| {
                let made = api.cluster_with(&json!({}), json!({"a": [1]})).await?;
                let body = json!([
                    {"op": "test", "path": "/spec/a/0", "value": 1},
                    {"op": "add", "path": "/spec/a/-", "value": 2},
                    {"op": "remove", "path": "/spec/a/0"},
                ]);
                let answer = api.patch_as(OPERATIONS, &made.path, body).await?;
                answer.status(200)?.has("/spec", json!({"a": [2]}))?;
            }
        ),
        check!(
            "patch.failed-test",
            "An operation that does not fit answers 409 CNF-005 and changes nothing",
            SOURCE,
            |api| {
                let made = api.cluster_with(&json!({}), json!({"a": 1})).await?;
                for operation in [
                    json!({"op": "test", "path": "/spec/a", "value": 2}),
                    json!({"op": "remove", "path": "/spec/b"}),
                ] {
                    let body = json!([{"op": "add", "path": "/spec/c", "value": 1}, operation]);
                    let answer = api.patch_as(OPERATIONS, &made.path, body).await?;
                    answer.problem(409, "CNF-005")?;
                }
                api.get(&made.path).await?.has("/generation", 1)?;
            }
        ),
    ]
}

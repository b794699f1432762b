//! Kinds beyond clusters and node pools, where the server has them.

use serde_json::json;

use crate::check::{Check, check};

const SOURCE: &str = "docs/reference/api.md#resources";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "kinds.immediate",
            "A kind without required adapters has no conditions and is removed immediately",
            SOURCE,
            |api| {
                api.needs_kind("channels").await?;
                let made = api.make("/channels", api.body("Channel")).await?;
                made.answer.has("/status", json!({"conditions": []}))?;
                let answer = api.delete(&made.path).await?;
                answer.status(202)?.text("/deleted_time")?;
                api.get(&made.path).await?.problem(404, "NTF-001")?;
            }
        ),
        check!(
            "kinds.restrict",
            "Active children of a restricting kind hold their owner: 409 CNF-003",
            SOURCE,
            |api| {
                api.needs_kind("channels").await?;
                let channel = api.make("/channels", api.body("Channel")).await?;
                let version = api
                    .make(&format!("{}/versions", channel.path), api.body("Version"))
                    .await?;
                let answer = api.delete(&channel.path).await?;
                let detail = format!(
                    "Cannot delete Channel '{}': active Version(s) exist",
                    channel.id
                );
                answer.problem(409, "CNF-003")?.detail(&detail)?;
                api.get(&channel.path).await?.has("/generation", 1)?;
                api.delete(&version.path).await?.status(202)?;
                api.delete(&channel.path).await?.status(202)?;
                api.get(&channel.path).await?.problem(404, "NTF-001")?;
            }
        ),
        check!(
            "kinds.references",
            "A reference type that the kind doesn't have answers 400 VAL-000",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster");
                body["references"] = json!({"nonsense": [{"id": "x", "kind": "Cluster"}]});
                let answer = api.post("/clusters", &body).await?;
                answer
                    .problem(400, "VAL-000")?
                    .detail(r#"unknown reference type "nonsense" for Cluster"#)?;
            }
        ),
        check!(
            "kinds.references-generation",
            "A patch that sends references raises the generation",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api.patch(&made.path, json!({"references": {}})).await?;
                answer
                    .status(200)?
                    .has("/generation", 2)?
                    .lacks("/references")?;
            }
        ),
    ]
}

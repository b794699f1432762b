//! Reports of adapters.

use serde_json::{Value, json};

use crate::check::{Check, check};
use crate::subject::Subject;
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/api.md#reports";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "reports.stored",
            "PUT statuses answers 201 with the report, on create and on update",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                for _ in 0..2 {
                    let answer = api.report(&made.path, "any", 1, &[]).await?;
                    answer
                        .status(201)?
                        .has("/adapter", "any")?
                        .has("/observed_generation", 1)?;
                }
                let list = api.get(&format!("{}/statuses", made.path)).await?;
                list.has("/total", 1)?.has("/items/0/adapter", "any")?;
            }
        ),
        check!(
            "reports.data",
            "data and metadata come back as they were sent",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let mut body = Subject::report_body("any", 1, &[]);
                body["data"] = json!({"zone": "é", "nested": {"a": [1, null]}});
                body["metadata"] = json!({"attempt": 2, "job_name": "job-1"});
                let answer = api.put(&format!("{}/statuses", made.path), &body).await?;
                answer
                    .status(201)?
                    .has("/data", body["data"].clone())?
                    .has("/metadata", body["metadata"].clone())?;
            }
        ),
        check!(
            "reports.no-data",
            "A report without data has data {} and no metadata",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api.report(&made.path, "any", 1, &[]).await?;
                answer
                    .status(201)?
                    .has("/data", json!({}))?
                    .lacks("/metadata")?;
            }
        ),
        check!(
            "reports.no-time",
            "A report without observed_time is one of now",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let mut body = Subject::report_body("any", 1, &[]);
                body.as_object_mut()
                    .map(|body| body.remove("observed_time"));
                let answer = api.put(&format!("{}/statuses", made.path), &body).await?;
                answer.status(201)?.text("/last_report_time")?;
            }
        ),
        check!(
            "reports.future-generation",
            "A report of a generation to come is discarded: 204",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.report(&made.path, "any", 2, &[]).await?.status(204)?;
                api.get(&format!("{}/statuses", made.path))
                    .await?
                    .has("/total", 0)?;
            }
        ),
        check!(
            "reports.older-generation",
            "A report of an older generation than the adapter's last is discarded: 204",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.patch(&made.path, json!({"spec": {"a": 1}}))
                    .await?
                    .status(200)?;
                api.report(&made.path, "any", 2, &[]).await?.status(201)?;
                api.report(&made.path, "any", 1, &[]).await?.status(204)?;
                let list = api.get(&format!("{}/statuses", made.path)).await?;
                list.has("/items/0/observed_generation", 2)?;
            }
        ),
        check!(
            "reports.older-time",
            "A report of an earlier time of the same generation is discarded: 204",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let path = format!("{}/statuses", made.path);
                let mut body = Subject::report_body("any", 1, &[]);
                body["observed_time"] = json!(Subject::ago(10));
                api.put(&path, &body).await?.status(201)?;
                body["observed_time"] = json!(Subject::ago(20));
                api.put(&path, &body).await?.status(204)?;
            }
        ),
        check!(
            "reports.same-time",
            "Of the same generation and time the stored report stands: 201 with it",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let path = format!("{}/statuses", made.path);
                let mut body = Subject::report_body("any", 1, &[]);
                body["data"] = json!({"n": 1});
                api.put(&path, &body).await?.status(201)?;
                body["data"] = json!({"n": 2});
                api.put(&path, &body)
                    .await?
                    .status(201)?
                    .has("/data", json!({"n": 1}))?;
            }
        ),
        check!(
            "reports.unknown",
            "Available=Unknown is stored as a first report and discarded after one",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.report(&made.path, "any", 1, &[("Available", "Unknown")])
                    .await?
                    .status(201)?;
                api.report(&made.path, "any", 1, &[("Available", "Unknown")])
                    .await?
                    .status(204)?;
                api.report(&made.path, "any", 1, &[]).await?.status(201)?;
            }
        ),
        check!(
            "reports.mandatory",
            "Available, Applied and Health must be there",
            SOURCE,
            |api| {
                for missing in ["Available", "Applied", "Health"] {
                    let mut body = Subject::report_body("any", 1, &[]);
                    if let Some(all) = body["conditions"].as_array_mut() {
                        all.retain(|condition| condition["type"] != missing);
                    }
                    let detail = format!(
                        "missing mandatory condition '{missing}': all adapters must report Available, Applied, and Health"
                    );
                    refuses(api, &body, &detail).await?;
                }
            }
        ),
        check!(
            "reports.adapter",
            "A report without adapter answers 400 VAL-000",
            SOURCE,
            |api| {
                let body = Subject::report_body("", 1, &[]);
                refuses(api, &body, "adapter is required").await?;
            }
        ),
        check!(
            "reports.generation",
            "observed_generation is 1 or more",
            SOURCE,
            |api| {
                let body = Subject::report_body("any", 0, &[]);
                refuses(api, &body, "observed_generation must be >= 1").await?;
            }
        ),
        check!(
            "reports.condition-status",
            "A condition is True, False or Unknown",
            SOURCE,
            |api| {
                let body = Subject::report_body("any", 1, &[("Health", "true")]);
                let detail = "invalid status value 'true' for condition at index 2 (type: Health): must be 'True', 'False', or 'Unknown'";
                refuses(api, &body, detail).await?;
            }
        ),
        check!(
            "reports.condition-twice",
            "A condition type appears once",
            SOURCE,
            |api| {
                let mut body = Subject::report_body("any", 1, &[]);
                body["conditions"][1]["type"] = json!("Available");
                refuses(
                    api,
                    &body,
                    "duplicate condition type 'Available' at index 1",
                )
                .await?;
            }
        ),
        check!(
            "reports.too-old",
            "A report is 30 minutes old at most",
            SOURCE,
            |api| {
                let mut body = Subject::report_body("any", 1, &[]);
                body["observed_time"] = json!(Subject::ago(32 * 60));
                refuses(
                    api,
                    &body,
                    "observed_time must not be more than 30m0s in the past",
                )
                .await?;
            }
        ),
        check!(
            "reports.too-new",
            "A report is 5 minutes ahead at most",
            SOURCE,
            |api| {
                let mut body = Subject::report_body("any", 1, &[]);
                body["observed_time"] = json!(Subject::ago(-7 * 60));
                refuses(
                    api,
                    &body,
                    "observed_time must not be more than 5m0s in the future",
                )
                .await?;
            }
        ),
        check!(
            "reports.time-zone",
            "A time without zone answers 400 VAL-006",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let mut body = Subject::report_body("any", 1, &[]);
                body["observed_time"] = json!("2026-01-01T10:00:00");
                api.put(&format!("{}/statuses", made.path), &body)
                    .await?
                    .problem(400, "VAL-006")?;
            }
        ),
        check!(
            "reports.resource",
            "Reports change neither generation nor updated_time of the resource",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let before = api.get(&made.path).await?;
                api.report(&made.path, "any", 1, &[]).await?.status(201)?;
                let after = api.get(&made.path).await?;
                for member in ["/generation", "/updated_time", "/updated_by"] {
                    after.has(member, before.at(member).clone())?;
                }
            }
        ),
        check!(
            "reports.transition",
            "last_transition_time is kept while a condition's status is",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let path = format!("{}/statuses", made.path);
                let mut body = Subject::report_body("any", 1, &[]);
                body["observed_time"] = json!(Subject::ago(60));
                let first = api.put(&path, &body).await?;
                let began = first
                    .status(201)?
                    .at("/conditions/0/last_transition_time")
                    .clone();
                body["observed_time"] = json!(Subject::ago(30));
                let kept = api.put(&path, &body).await?;
                kept.status(201)?
                    .has("/conditions/0/last_transition_time", began.clone())?;
                kept.has("/created_time", first.at("/created_time").clone())?;
                body["observed_time"] = json!(Subject::ago(0));
                body["conditions"][0]["status"] = json!("False");
                let moved = api.put(&path, &body).await?;
                let now = moved.status(201)?.at("/conditions/0/last_transition_time");
                moved.expect(*now != began, "last_transition_time moves with the status")?;
            }
        ),
        check!(
            "reports.missing",
            "A report on a missing resource answers 404 NTF-001",
            SOURCE,
            |api| {
                api.report("/clusters/nobody", "any", 1, &[])
                    .await?
                    .problem(404, "NTF-001")?;
                api.get("/clusters/nobody/statuses")
                    .await?
                    .problem(404, "NTF-001")?;
            }
        ),
        check!(
            "reports.pages",
            "Pages of reports hold each adapter once",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                for number in 0..5 {
                    api.report(&made.path, &format!("adapter-{number}"), 1, &[])
                        .await?
                        .status(201)?;
                }
                let mut seen = Vec::new();
                for page in 1..=3 {
                    let list = api
                        .get(&format!("{}/statuses?size=2&page={page}", made.path))
                        .await?;
                    list.has("/total", 5)?;
                    seen.extend(list.column("adapter")?.into_iter().map(str::to_owned));
                }
                seen.sort();
                let last = api
                    .get(&format!("{}/statuses?size=2&page=3", made.path))
                    .await?;
                let all: Vec<_> = (0..5).map(|number| format!("adapter-{number}")).collect();
                last.expect(seen == all, "five adapters on three pages, each once")?;
            }
        ),
        check!(
            "reports.no-post",
            "POST statuses answers 405",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.post(&format!("{}/statuses", made.path), "{}")
                    .await?
                    .status(405)?;
            }
        ),
    ]
}

/// A report that must be refused with this detail.
async fn refuses(api: &Subject, body: &Value, detail: &str) -> Verdict {
    let made = api.cluster().await?;
    let answer = api.put(&format!("{}/statuses", made.path), body).await?;
    answer.problem(400, "VAL-000")?.detail(detail)?;
    let list = api.get(&format!("{}/statuses", made.path)).await?;
    list.has("/total", 0).map(drop)
}

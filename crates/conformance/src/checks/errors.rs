//! The shape of errors.

use serde_json::Value;

use crate::answer::Answer;
use crate::check::{Check, check};
use crate::client::ROOT;
use crate::subject::Subject;
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/errors.md";

/// Paths whose problems have these statuses, codes, titles and ends of types.
const PROBLEMS: &[(&str, u16, &str, &str, &str)] = &[
    (
        "/clusters?page=0",
        400,
        "VAL-000",
        "Validation Failed",
        "validation-error",
    ),
    (
        "/clusters?order=nonsense",
        400,
        "VAL-005",
        "Bad Request",
        "bad-request",
    ),
    (
        "/clusters/nobody",
        404,
        "NTF-001",
        "Resource Not Found",
        "not-found",
    ),
    (
        "/nowhere",
        404,
        "NTF-000",
        "Endpoint Not Found",
        "not-found",
    ),
];

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "errors.shape",
            "A problem has type, title, status, code, detail, instance, timestamp and trace_id",
            SOURCE,
            |api| {
                for (path, status, code, title, kind) in PROBLEMS {
                    let answer = api.get(path).await?;
                    answer.problem(*status, code)?.has("/title", *title)?;
                    answer.has("/type", format!("https://api.hyperfleet.io/errors/{kind}"))?;
                    let instance = path.split('?').next().unwrap_or_default();
                    answer.has("/instance", format!("{ROOT}{instance}"))?;
                    is_whole(&answer)?;
                }
            }
        ),
        check!(
            "errors.malformed",
            "Malformed requests have title and type of their own",
            SOURCE,
            |api| {
                let answer = api.post("/clusters", "{").await?;
                answer
                    .problem(400, "VAL-006")?
                    .has("/title", "Malformed Request")?;
                answer.has(
                    "/type",
                    "https://api.hyperfleet.io/errors/malformed-request",
                )?;
                is_whole(&answer)?;
            }
        ),
        check!(
            "errors.conflict",
            "Conflicts of names and of states have titles of their own",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let mut body = api.body("Cluster");
                body["name"] = Value::from(made.name.as_str());
                let taken = api.post("/clusters", &body).await?;
                taken
                    .problem(409, "CNF-001")?
                    .has("/title", "Resource Conflict")?;
                let reason = r#"{"reason": "conformance"}"#;
                let state = api
                    .post(&format!("{}/force-delete", made.path), reason)
                    .await?;
                state
                    .problem(409, "CNF-003")?
                    .has("/title", "State Conflict")?;
                for answer in [taken, state] {
                    answer.has("/type", "https://api.hyperfleet.io/errors/conflict")?;
                    is_whole(&answer)?;
                }
            }
        ),
        check!(
            "errors.entries",
            "Entries of errors have a field and a message",
            SOURCE,
            |api| {
                let answer = api.get("/clusters?page=x&size=y").await?;
                for error in answer
                    .problem(400, "VAL-000")?
                    .at("/errors")
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    answer.expect(
                        error["field"].is_string() && error["message"].is_string(),
                        "field and message",
                    )?;
                }
                answer.text("/errors/0/field")?;
            }
        ),
        check!(
            "errors.large",
            "A body above 1 MiB answers 413 LMT-002",
            SOURCE,
            |api| {
                let answer = large(api).await?;
                answer
                    .problem(413, "LMT-002")?
                    .has("/title", "Payload Too Large")?;
            }
        ),
        check!(
            "errors.encoding",
            "A body packed in an unknown way answers 415 VAL-006",
            SOURCE,
            |api| {
                let path = format!("{ROOT}/clusters");
                let answer = api
                    .send("POST", &path, &[("content-encoding", "br")], "{}")
                    .await?;
                answer.problem(415, "VAL-006")?;
                answer.expect(
                    answer.header("accept-encoding").is_some(),
                    "header accept-encoding",
                )?;
            }
        ),
    ]
}

/// Expects the members that every problem has.
fn is_whole(answer: &Answer) -> Verdict {
    let time = answer.text("/timestamp")?;
    let is_time = chrono::DateTime::parse_from_rfc3339(time).is_ok();
    answer.expect(is_time, "timestamp is an RFC 3339 time")?;
    answer.expect(!answer.text("/detail")?.is_empty(), "a detail")?;
    answer.text("/trace_id").map(drop)
}

async fn large(api: &Subject) -> Verdict<Answer> {
    let body = api.body("Cluster").to_string();
    let long = "x".repeat(1024 * 1024);
    api.post(
        "/clusters",
        body.replace(r#""spec":{}"#, &format!(r#""spec":{{"a":"{long}"}}"#)),
    )
    .await
}

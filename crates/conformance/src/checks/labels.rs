//! Labels of resources.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::check::{Check, check};
use crate::subject::Subject;
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/api.md#resources";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "labels.kubernetes",
            "Labels follow Kubernetes' syntax",
            SOURCE,
            |api| {
                let long = "x".repeat(63);
                let labels = json!({
                    "a": "", "a.b-c_d": "V.a-l_ue", "example.com/key": "v", "long": long, (long.as_str()): "v",
                });
                let made = api.cluster_with(&labels, json!({})).await?;
                for (key, value) in labels.as_object().into_iter().flatten() {
                    let found = &made.answer.at("/labels")[key];
                    made.answer
                        .expect(found == value, format!("label {key} is {value}"))?;
                }
            }
        ),
        check!(
            "labels.bad-keys",
            "A bad key of a label answers 400 VAL-000",
            SOURCE,
            |api| {
                for key in [
                    "",
                    "-a",
                    "a-",
                    "a b",
                    "ä",
                    "a/b/c",
                    "/a",
                    "UPPER.com/a",
                    &"x".repeat(64),
                ] {
                    with_labels(api, json!({key: "v"}))
                        .await?
                        .problem(400, "VAL-000")?;
                }
            }
        ),
        check!(
            "labels.bad-values",
            "A bad value of a label answers 400 VAL-000 and names the label",
            SOURCE,
            |api| {
                for value in ["a b", "-a", "a-", "ä", "a/b", &"x".repeat(64)] {
                    let answer = with_labels(api, json!({"team": value})).await?;
                    answer
                        .problem(400, "VAL-000")?
                        .has("/errors/0/field", "labels[team]")?;
                    answer.has("/errors/0/constraint", "pattern")?;
                }
            }
        ),
        check!(
            "labels.texts",
            "A label that is no text answers 400 VAL-000",
            SOURCE,
            |api| {
                with_labels(api, json!({"team": 1}))
                    .await?
                    .problem(400, "VAL-000")?;
                with_labels(api, json!(["team"]))
                    .await?
                    .problem(400, "VAL-000")?;
            }
        ),
    ]
}

async fn with_labels(api: &Subject, labels: Value) -> Verdict<Answer> {
    let mut body = api.body("Cluster");
    body["labels"] = labels;
    api.post("/clusters", &body).await
}

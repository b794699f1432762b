//! How bodies are read and stored.

use serde_json::json;

use crate::check::{Check, check};
use crate::subject::{LABEL, Made, Subject};
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/errors.md";
const NUMBERS: &str = "docs/reference/api.md#resources";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "json.malformed",
            "A body that is no JSON answers 400 VAL-006",
            SOURCE,
            |api| {
                for body in ["{", "nothing", r#"{"kind":}"#, "{} {}"] {
                    api.post("/clusters", body).await?.problem(400, "VAL-006")?;
                }
            }
        ),
        check!(
            "json.empty",
            "A missing body answers 400 VAL-006",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.post("/clusters", "").await?.problem(400, "VAL-006")?;
                api.patch(&made.path, "").await?.problem(400, "VAL-006")?;
                api.put(&format!("{}/statuses", made.path), "")
                    .await?
                    .problem(400, "VAL-006")?;
            }
        ),
        check!(
            "json.no-object",
            "A body that is no object answers 400",
            SOURCE,
            |api| {
                for body in ["[]", "5", "\"text\""] {
                    api.post("/clusters", body).await?.status(400)?;
                }
            }
        ),
        check!(
            "json.types",
            "A member of the wrong type answers 400 VAL-000",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster");
                body["name"] = json!(5);
                api.post("/clusters", &body)
                    .await?
                    .problem(400, "VAL-000")?
                    .detail("field 'name' must be a string")?;
            }
        ),
        check!(
            "json.duplicate-member",
            "A known member twice answers 400",
            NUMBERS,
            |api| {
                let (first, second) = (api.name(), api.name());
                let body = format!(
                    r#"{{"kind":"Cluster","name":"{first}","name":"{second}","spec":{{}},"labels":{{"{LABEL}":"{}"}}}}"#,
                    api.run
                );
                let answer = api.post("/clusters", body).await?;
                answer.status(400)?;
            }
        ),
        check!(
            "json.duplicate-in-spec",
            "Inside a spec the last of two equal members counts",
            NUMBERS,
            |api| {
                let made = with_spec(api, r#"{"a": 1, "a": 2}"#).await?;
                made.answer.has("/spec", json!({"a": 2}))?;
            }
        ),
        check!(
            "json.integers",
            "Integers of 64 bits are kept exactly",
            NUMBERS,
            |api| {
                for number in [
                    "9007199254740993",
                    "9223372036854775807",
                    "-9223372036854775808",
                    "18446744073709551615",
                ] {
                    let made = with_spec(api, &format!(r#"{{"n": {number}}}"#)).await?;
                    let found = api.get(&made.path).await?;
                    let text = found.at("/spec/n").to_string();
                    found.expect(text == number, format!("/spec/n is {number}"))?;
                }
            }
        ),
        check!(
            "json.big-integers",
            "Integers beyond 64 bits answer 400 VAL-006",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster").to_string();
                body = body.replace(r#""spec":{}"#, r#""spec":{"n":18446744073709551616}"#);
                api.post("/clusters", body).await?.problem(400, "VAL-006")?;
            }
        ),
        check!(
            "json.floats",
            "Fractions come back with the same value",
            NUMBERS,
            |api| {
                for number in [0.1, 1e-300, -2.5, 1.797_693_134_862_315_7e308] {
                    let made = with_spec(api, &json!({"n": number}).to_string()).await?;
                    let found = api.get(&made.path).await?;
                    found.expect(
                        found.at("/spec/n").as_f64() == Some(number),
                        format!("/spec/n is {number:e}"),
                    )?;
                }
            }
        ),
        check!(
            "json.unicode",
            "Texts of a spec come back as they were, from any script",
            NUMBERS,
            |api| {
                let texts =
                    json!({"emoji": "🚀", "mixed": "aé中\u{2028}<>&\"\\\n\t", "ключ": "значение"});
                let made = with_spec(api, &texts.to_string()).await?;
                api.get(&made.path).await?.has("/spec", texts)?;
            }
        ),
        check!(
            "json.null-member",
            "Null inside a spec is kept",
            NUMBERS,
            |api| {
                let made = with_spec(api, r#"{"a": null, "b": [null]}"#).await?;
                api.get(&made.path)
                    .await?
                    .has("/spec", json!({"a": null, "b": [null]}))?;
            }
        ),
        check!("json.nul", "A NUL character answers 400", SOURCE, |api| {
            let mut body = api.body("Cluster");
            body["spec"] = json!({"a": "\u{0}"});
            api.post("/clusters", &body)
                .await?
                .problem(400, "VAL-006")?;
        }),
        check!(
            "json.depth",
            "A body nests 64 levels at most",
            SOURCE,
            |api| {
                let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
                let body = api
                    .body("Cluster")
                    .to_string()
                    .replace(r#""spec":{}"#, &format!(r#""spec":{{"a":{deep}}}"#));
                api.post("/clusters", body).await?.problem(400, "VAL-006")?;
            }
        ),
    ]
}

/// Creates a cluster with a literal spec.
async fn with_spec(api: &Subject, spec: &str) -> Verdict<Made> {
    let body = api.body("Cluster").to_string();
    let body = body.replace(r#""spec":{}"#, &format!(r#""spec":{spec}"#));
    let answer = api.post("/clusters", body).await?;
    let id = answer.status(201)?.text("/id")?.to_owned();
    Ok(Made {
        name: answer.text("/name")?.to_owned(),
        path: format!("/clusters/{id}"),
        id,
        answer,
    })
}

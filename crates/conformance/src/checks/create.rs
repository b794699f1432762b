//! Creating and reading resources.

use serde_json::{Value, json};

use crate::check::{Check, check};
use crate::client::ROOT;
use crate::subject::{LABEL, Subject};
use crate::verdict::Verdict;

const SOURCE: &str = "docs/reference/api.md#resources";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "create.whole",
            "POST answers 201 with the whole resource at generation 1",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster");
                body["spec"] = json!({"region": "eu", "replicas": 3});
                let made = api.make("/clusters", body).await?;
                let href = format!("{ROOT}{}", made.path);
                let answer = &made.answer;
                answer
                    .has("/kind", "Cluster")?
                    .has("/generation", 1)?
                    .has("/href", href)?;
                answer.has("/spec", json!({"region": "eu", "replicas": 3}))?;
                answer.has("/labels", json!({LABEL: api.run}))?;
                answer.has("/updated_time", answer.at("/created_time").clone())?;
                answer.has("/updated_by", answer.text("/created_by")?)?;
            }
        ),
        check!(
            "create.same-as-read",
            "GET answers with what POST answered",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let found = api.get(&made.path).await?;
                for member in [
                    "id",
                    "kind",
                    "name",
                    "spec",
                    "labels",
                    "generation",
                    "href",
                    "created_by",
                ] {
                    let pointer = format!("/{member}");
                    found
                        .status(200)?
                        .has(&pointer, made.answer.at(&pointer).clone())?;
                }
            }
        ),
        check!(
            "create.id",
            "An id is a lower-case UUID of version 7",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let parts: Vec<_> = made.id.split('-').map(str::len).collect();
                let is_lower = made
                    .id
                    .bytes()
                    .all(|byte| byte == b'-' || matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                let fits = parts == [8, 4, 4, 4, 12] && is_lower && made.id.as_bytes()[14] == b'7';
                made.answer
                    .expect(fits, "id is a lower-case UUID of version 7")?;
            }
        ),
        check!("create.times", "Times are RFC 3339 in UTC", SOURCE, |api| {
            let made = api.cluster().await?;
            for member in ["/created_time", "/updated_time"] {
                let text = made.answer.text(member)?;
                let is_time =
                    chrono::DateTime::parse_from_rfc3339(text).is_ok() && text.ends_with('Z');
                made.answer.expect(
                    is_time,
                    format!("{member} is an RFC 3339 time that ends with Z"),
                )?;
            }
        }),
        check!(
            "create.no-deletion",
            "A live resource has no deleted_time and no deleted_by, not even null",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let found = api.get(&made.path).await?;
                found.lacks("/deleted_time")?.lacks("/deleted_by")?;
                found.lacks("/references")?.lacks("/owner_references")?;
            }
        ),
        check!(
            "create.empty-labels",
            "A resource without labels has labels {}",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster");
                body["labels"] = json!({});
                let made = api.make("/clusters", body).await?;
                made.answer.has("/labels", json!({}))?;
            }
        ),
        check!(
            "create.service-members",
            "Members that only the service sets are ignored in POST",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster");
                for (name, value) in [
                    ("id", json!("mine")),
                    ("generation", json!(7)),
                    ("created_by", json!("me")),
                    ("href", json!("/x")),
                ] {
                    body[name] = value;
                }
                let made = api.make("/clusters", body).await?;
                made.answer.has("/generation", 1)?;
                made.answer
                    .expect(made.id != "mine", "id is the service's own")?;
                made.answer.expect(
                    made.answer.at("/created_by") != "me",
                    "created_by is the caller",
                )?;
            }
        ),
        check!(
            "create.kind-required",
            "POST without kind answers 400 VAL-000",
            SOURCE,
            |api| {
                refuses(api, "kind", Value::Null, "kind is required").await?;
            }
        ),
        check!(
            "create.kind-fits",
            "POST of another kind than the route's answers 400 VAL-000",
            SOURCE,
            |api| {
                refuses(api, "kind", json!("NodePool"), "kind must be 'Cluster'").await?;
            }
        ),
        check!(
            "create.name-required",
            "POST without name answers 400 VAL-000",
            SOURCE,
            |api| {
                refuses(api, "name", Value::Null, "name is required").await?;
            }
        ),
        check!(
            "create.name-short",
            "A cluster's name has at least 3 characters",
            SOURCE,
            |api| {
                refuses(
                    api,
                    "name",
                    json!("ab"),
                    "name must be at least 3 characters",
                )
                .await?;
            }
        ),
        check!(
            "create.name-long",
            "A cluster's name has at most 53 characters",
            SOURCE,
            |api| {
                refuses(
                    api,
                    "name",
                    json!("x".repeat(54)),
                    "name must be at most 53 characters",
                )
                .await?;
                let mut body = api.body("Cluster");
                let name = format!("{:x<53}", api.name());
                body["name"] = json!(name);
                api.make("/clusters", body)
                    .await?
                    .answer
                    .has("/name", name)?;
            }
        ),
        check!(
            "create.name-pattern",
            "Names are lower-case letters, digits and inner hyphens",
            SOURCE,
            |api| {
                let detail = "name must start and end with lowercase letter or number, and contain only lowercase letters, numbers, and hyphens";
                for name in [
                    "Upper", "-front", "back-", "un_der", "do.t", "spa ce", "ümlaut",
                ] {
                    refuses(api, "name", json!(name), detail).await?;
                }
            }
        ),
        check!(
            "create.name-taken",
            "A name that an active resource of the kind has answers 409 CNF-001",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let mut body = api.body("Cluster");
                body["name"] = json!(made.name);
                let answer = api.post("/clusters", &body).await?;
                answer
                    .problem(409, "CNF-001")?
                    .detail("This Cluster already exists")?;
            }
        ),
        check!(
            "create.name-free-again",
            "The name of a deleted resource is free immediately",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.delete(&made.path).await?.status(202)?;
                let mut body = api.body("Cluster");
                body["name"] = json!(made.name);
                api.make("/clusters", body).await?;
            }
        ),
        check!(
            "create.spec-required",
            "POST without spec answers 400 VAL-000",
            SOURCE,
            |api| {
                let mut body = api.body("Cluster");
                body.as_object_mut().map(|body| body.remove("spec"));
                let answer = api.post("/clusters", &body).await?;
                answer.problem(400, "VAL-000")?.detail("spec is required")?;
            }
        ),
        check!(
            "create.spec-object",
            "A spec that is no object answers 400 VAL-000",
            SOURCE,
            |api| {
                for spec in [json!("text"), json!([1]), json!(5)] {
                    let mut body = api.body("Cluster");
                    body["spec"] = spec;
                    api.post("/clusters", &body)
                        .await?
                        .problem(400, "VAL-000")?;
                }
            }
        ),
        check!(
            "create.collected",
            "All faults of a body are named together",
            "docs/reference/errors.md",
            |api| {
                let answer = api
                    .post("/clusters", json!({"kind": "Cluster", "name": "A"}))
                    .await?;
                answer
                    .problem(400, "VAL-000")?
                    .detail("Request body validation failed")?;
                let fields = answer.at("/errors").as_array().into_iter().flatten();
                let fields: Vec<_> = fields.filter_map(|error| error["field"].as_str()).collect();
                answer.expect(
                    fields.contains(&"name") && fields.contains(&"spec"),
                    "errors for name and for spec",
                )?;
            }
        ),
        check!(
            "create.flat-child",
            "A child kind created without its parent in the path answers 422 VAL-000",
            SOURCE,
            |api| {
                let detail =
                    r#"kind "NodePool" is a child kind; create it via /clusters/{id}/nodepools"#;
                for list in ["/nodepools", "/resources"] {
                    let answer = api.post(list, api.body("NodePool")).await?;
                    answer.problem(422, "VAL-000")?.detail(detail)?;
                }
            }
        ),
        check!(
            "create.generic",
            "POST /resources creates any root kind, named by kind",
            SOURCE,
            |api| {
                let made = api.make("/resources", api.body("Cluster")).await?;
                made.answer
                    .has("/href", format!("{ROOT}/clusters/{}", made.id))?;
                api.get(&format!("/clusters/{}", made.id))
                    .await?
                    .status(200)?;
            }
        ),
        check!(
            "create.generic-unknown",
            "POST /resources of an unknown kind answers 400 VAL-000",
            SOURCE,
            |api| {
                let answer = api.post("/resources", api.body("Nonsense")).await?;
                answer
                    .problem(400, "VAL-000")?
                    .detail("Unknown entity kind: Nonsense")?;
            }
        ),
        check!(
            "read.missing",
            "A resource that is not there answers 404 NTF-001, whatever the id looks like",
            SOURCE,
            |api| {
                for id in [
                    "nobody",
                    "019b7654-0000-7000-8000-000000000000",
                    "%27%20OR%201%3D1",
                ] {
                    api.get(&format!("/clusters/{id}"))
                        .await?
                        .problem(404, "NTF-001")?;
                }
                let answer = api.get("/clusters/nobody").await?;
                answer.detail("Cluster with id='nobody' not found")?;
            }
        ),
        check!(
            "read.generic",
            "GET /resources/{id} answers as the kind's own route",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let own = api.get(&made.path).await?;
                let generic = api.get(&format!("/resources/{}", made.id)).await?;
                generic.status(200)?.has("", own.body.clone())?;
                api.get("/resources/nobody")
                    .await?
                    .problem(404, "NTF-001")?
                    .detail("Resource with id='nobody' not found")?;
            }
        ),
        check!(
            "read.other-kind",
            "A resource is not found below another kind's route",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                api.get(&format!("/nodepools/{}", made.id))
                    .await?
                    .problem(404, "NTF-001")?;
            }
        ),
    ]
}

/// Creates a cluster with one member changed (`null` removes it), which must be refused with this detail.
async fn refuses(api: &Subject, member: &str, value: Value, detail: &str) -> Verdict {
    let mut body = api.body("Cluster");
    body[member] = value;
    let answer = api.post("/clusters", &body).await?;
    answer.problem(400, "VAL-000")?.detail(detail).map(drop)
}

//! Paths and methods.

use crate::check::{Check, check};
use crate::client::ROOT;

const SOURCE: &str = "docs/reference/api.md";
const ERRORS: &str = "docs/reference/errors.md";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "routes.metadata",
            "GET /api/hyperfleet says what the service is",
            SOURCE,
            |api| {
                let answer = api.send("GET", "/api/hyperfleet", &[], "").await?;
                answer
                    .status(200)?
                    .has("/id", "hyperfleet")?
                    .has("/kind", "API")?
                    .has("/href", "/api/hyperfleet")?;
                answer.header_is("content-type", Some("application/json"))?;
                answer.text("/version")?;
            }
        ),
        check!(
            "routes.openapi",
            "GET /openapi is a document of OpenAPI 3.0.3 as JSON",
            "docs/reference/api.md#openapi",
            |api| {
                let answer = api.get("/openapi").await?;
                answer
                    .status(200)?
                    .header_is("content-type", Some("application/json"))?;
                answer.has("/openapi", "3.0.3")?;
                answer.expect(answer.at("/paths").is_object(), "paths")?;
            }
        ),
        check!(
            "routes.nowhere",
            "A path without a route answers 404 NTF-000",
            ERRORS,
            |api| {
                for path in [
                    "/nowhere",
                    "/errors",
                    "/clusters/1/2/3",
                    "/Clusters",
                    "/nodepools/1/clusters",
                ] {
                    let answer = api.get(path).await?;
                    answer.problem(404, "NTF-000")?.detail(&format!(
                        "The requested endpoint '{ROOT}{path}' does not exist"
                    ))?;
                }
            }
        ),
        check!(
            "routes.allow",
            "A wrong method answers 405 with the right ones in Allow",
            ERRORS,
            |api| {
                let made = api.cluster().await?;
                for (method, path, allow) in [
                    ("PUT", "/clusters".to_owned(), "GET, HEAD, POST"),
                    ("DELETE", "/clusters".to_owned(), "GET, HEAD, POST"),
                    ("POST", made.path.clone(), "DELETE, GET, HEAD, PATCH"),
                    ("PUT", made.path.clone(), "DELETE, GET, HEAD, PATCH"),
                    (
                        "DELETE",
                        format!("{}/statuses", made.path),
                        "GET, HEAD, PUT",
                    ),
                    ("GET", format!("{}/force-delete", made.path), "POST"),
                    ("OPTIONS", "/resources".to_owned(), "GET, HEAD, POST"),
                ] {
                    let answer = api.send(method, &format!("{ROOT}{path}"), &[], "").await?;
                    answer.status(405)?.header_is("allow", Some(allow))?;
                }
            }
        ),
        check!(
            "routes.method-problem",
            "A 405 is a problem VAL-008",
            ERRORS,
            |api| {
                let answer = api
                    .send("PUT", &format!("{ROOT}/clusters"), &[], "")
                    .await?;
                answer
                    .problem(405, "VAL-008")?
                    .has("/title", "Method Not Allowed")?
                    .has(
                        "/type",
                        "https://api.hyperfleet.io/errors/method-not-allowed",
                    )?;
            }
        ),
        check!(
            "routes.head",
            "HEAD answers as GET without the body",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                for (path, status) in [
                    ("/clusters".to_owned(), 200),
                    (made.path, 200),
                    ("/clusters/nobody".to_owned(), 404),
                ] {
                    let answer = api.send("HEAD", &format!("{ROOT}{path}"), &[], "").await?;
                    answer
                        .status(status)?
                        .expect(answer.bytes.is_empty(), "no body")?;
                }
            }
        ),
        check!(
            "routes.slash",
            "One trailing slash is ignored",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api.get(&format!("{}/", made.path)).await?;
                answer.status(200)?.has("/id", made.id.as_str())?;
                api.get("/clusters/?size=1").await?.status(200)?;
                let missing = api.get("/clusters/nobody/").await?;
                missing.has("/instance", format!("{ROOT}/clusters/nobody"))?;
            }
        ),
        check!(
            "routes.audit",
            "GET /audit lists changes, newest first",
            "docs/reference/api.md#audit",
            |api| {
                let made = api.cluster().await?;
                api.patch(&made.path, r#"{"spec": {"a": 1}}"#)
                    .await?
                    .status(200)?;
                let list = api.list("/audit", &[("resource_id", &made.id)]).await?;
                let actions = list.column("action")?;
                list.expect(actions == ["patch", "create"], "a patch and a create")?;
                list.has("/items/0/generation_before", 1)?
                    .has("/items/0/generation_after", 2)?;
            }
        ),
    ]
}

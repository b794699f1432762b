//! Headers of responses.

use crate::check::{Check, check};
use crate::client::ROOT;

const SOURCE: &str = "docs/reference/api.md";
const ERRORS: &str = "docs/reference/errors.md";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "headers.content-type",
            "Answers are exactly application/json",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                made.answer
                    .header_is("content-type", Some("application/json"))?;
                for path in [
                    "/clusters?size=1",
                    &made.path,
                    &format!("{}/statuses", made.path),
                ] {
                    api.get(path)
                        .await?
                        .status(200)?
                        .header_is("content-type", Some("application/json"))?;
                }
            }
        ),
        check!(
            "headers.request-id",
            "Every answer of a route has an X-Request-Id; problems have it as trace_id",
            ERRORS,
            |api| {
                let one = api.get("/clusters/nobody").await?;
                let two = api.get("/clusters/nobody").await?;
                one.header_is("x-request-id", Some(one.text("/trace_id")?))?;
                two.expect(
                    one.header("x-request-id") != two.header("x-request-id"),
                    "a new id for each request",
                )?;
                let id = one.header("x-request-id").unwrap_or_default();
                one.expect(id.len() == 36, "an id that is a UUID")?;
            }
        ),
        check!(
            "headers.own-request-id",
            "A sane X-Request-Id is kept",
            ERRORS,
            |api| {
                let sent = [("x-request-id", "Conformance_1.0-x")];
                let answer = api
                    .send("GET", &format!("{ROOT}/clusters/nobody"), &sent, "")
                    .await?;
                let is_kept = answer.header("x-request-id") == Some("Conformance_1.0-x");
                answer.expect(is_kept, "the request's own id")?;
            }
        ),
        check!(
            "headers.bad-request-id",
            "Another X-Request-Id is replaced",
            ERRORS,
            |api| {
                for id in ["a b", "a/b", &"x".repeat(129)] {
                    let answer = api
                        .send(
                            "GET",
                            &format!("{ROOT}/clusters/nobody"),
                            &[("x-request-id", id)],
                            "",
                        )
                        .await?;
                    answer.expect(
                        answer.header("x-request-id") != Some(id),
                        "an id of the service",
                    )?;
                }
            }
        ),
        check!(
            "headers.vary",
            "Answers vary by Authorization",
            SOURCE,
            |api| {
                let answer = api.get("/clusters?size=1").await?;
                let vary = answer.header("vary").unwrap_or_default().to_lowercase();
                answer.expect(
                    vary.contains("authorization"),
                    "header vary with Authorization",
                )?;
            }
        ),
        check!(
            "headers.cache",
            "Answers are not to be stored",
            SOURCE,
            |api| {
                let answer = api.get("/clusters?size=1").await?;
                answer.header_is("cache-control", Some("no-store"))?;
            }
        ),
        check!(
            "headers.never",
            "Answers have no Location and no CORS headers",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                for name in ["location", "access-control-allow-origin"] {
                    made.answer.header_is(name, None)?;
                }
            }
        ),
        check!(
            "headers.gzip",
            "Clients that accept gzip get gzip",
            SOURCE,
            |api| {
                let path = format!("{ROOT}/clusters?size=1");
                let answer = api
                    .send("GET", &path, &[("accept-encoding", "gzip")], "")
                    .await?;
                answer
                    .status(200)?
                    .header_is("content-encoding", Some("gzip"))?;
                answer.expect(
                    answer.bytes.starts_with(&[0x1f, 0x8b]),
                    "a body packed by gzip",
                )?;
                let plain = api
                    .send("GET", &path, &[("accept-encoding", "gzip;q=0")], "")
                    .await?;
                plain.status(200)?.header_is("content-encoding", None)?;
            }
        ),
        check!(
            "headers.no-content",
            "A 204 has no body and no Content-Type",
            SOURCE,
            |api| {
                let made = api.cluster().await?;
                let answer = api.report(&made.path, "any", 2, &[]).await?;
                answer.status(204)?.header_is("content-type", None)?;
                answer.expect(answer.bytes.is_empty(), "no body")?;
            }
        ),
    ]
}

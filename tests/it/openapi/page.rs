//! The page works without the internet: it and all that it loads come from the server.

use super::ask;
use crate::support::TestApi;

/// The values of attributes and `url(…)`s that make a browser load something.
fn loaded(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (begin, end) in [("src=\"", '"'), ("href=\"", '"'), ("url(", ')')] {
        for rest in text.split(begin).skip(1) {
            let value = rest.split(end).next().unwrap();
            found.push(value.trim_matches(['"', '\'']).to_owned());
        }
    }
    found
}

#[tokio::test]
async fn the_page_and_its_files_come_from_the_server() {
    let api = TestApi::spawn().await;
    let page = ask(&api, "get", "/api/hyperfleet/v1/openapi.html", &[]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html"));
    let text = String::from_utf8(page.bytes).unwrap();
    assert!(text.contains("<html") && text.contains("</html>"));
    let files = loaded(&text);
    assert_eq!(files.len(), 5, "{files:?}");
    for file in files {
        assert!(file.starts_with("/api/hyperfleet/v1/openapi/"), "{file}");
        let plain = ask(&api, "get", &file, &[]).await;
        assert_eq!(plain.status, 200, "{file}");
        let kind = match file.rsplit('.').next().unwrap() {
            "css" => "text/css",
            "js" => "text/javascript",
            _ => "image/png",
        };
        assert_eq!(plain.header("content-type"), Some(kind), "{file}");
        assert_eq!(plain.header("content-encoding"), None, "{file}");
        assert!(!plain.bytes.is_empty(), "{file}");
        let packed = ask(&api, "get", &file, &[("accept-encoding", "gzip")]).await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{file}");
        // The initializer is packed on the way, the others are kept so.
        let vary = packed.header("vary").unwrap_or_default();
        assert!(
            vary.eq_ignore_ascii_case("accept-encoding"),
            "{file}: {vary}"
        );
        if kind == "text/css" {
            let text = String::from_utf8(plain.bytes).unwrap();
            let outside = |from: &String| !from.starts_with("data:");
            let outside: Vec<_> = loaded(&text).into_iter().filter(outside).collect();
            assert!(outside.is_empty(), "{file}: {outside:?}");
        }
    }
}

#[tokio::test]
async fn the_page_shows_our_document_without_a_validator() {
    let api = TestApi::spawn().await;
    let file = "/api/hyperfleet/v1/openapi/swagger-initializer.js";
    let answer = ask(&api, "get", file, &[]).await;
    let text = String::from_utf8(answer.bytes).unwrap();
    assert!(
        text.contains(r#""url": "/api/hyperfleet/v1/openapi""#),
        "{text}"
    );
    assert!(text.contains(r#""validatorUrl": "none""#), "{text}");
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "{text}"
    );
}

#[tokio::test]
async fn only_files_of_the_page_are_served() {
    let api = TestApi::spawn().await;
    for file in [
        "",
        "index.html",
        "nothing.js",
        "..%2Fopenapi",
        "%2e%2e",
        "swagger-ui.css.map",
        "\u{e9}.js",
    ] {
        let answer = ask(
            &api,
            "get",
            &format!("/api/hyperfleet/v1/openapi/{file}"),
            &[],
        )
        .await;
        // No file at all: the document, whose path may end in a slash.
        let expected = if file.is_empty() { 200 } else { 404 };
        assert_eq!(answer.status, expected, "{file}");
    }
    let answer = ask(
        &api,
        "post",
        "/api/hyperfleet/v1/openapi/swagger-ui.css",
        &[],
    )
    .await;
    assert_eq!(answer.problem(), (405, "VAL-008"));
}

#[tokio::test]
async fn the_document_is_revalidated_by_its_tag() {
    let api = TestApi::spawn().await;
    let path = "/api/hyperfleet/v1/openapi";
    let first = ask(&api, "get", path, &[]).await;
    let packed = ask(&api, "get", path, &[("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.bytes.len() * 4 < first.bytes.len());
    let tag = first.header("etag").unwrap().to_owned();
    assert_eq!(packed.header("etag"), Some(tag.as_str()));
    for known in ["*".to_owned(), tag.clone(), format!("\"other\", {tag}")] {
        let again = ask(&api, "get", path, &[("if-none-match", &known)]).await;
        assert_eq!(again.status, 304, "{known}");
        assert!(again.bytes.is_empty());
        assert_eq!(again.header("etag"), Some(tag.as_str()));
    }
    for unknown in ["\"other\"", "nonsense", ""] {
        let again = ask(&api, "get", path, &[("if-none-match", unknown)]).await;
        assert_eq!((again.status, again.bytes.len()), (200, first.bytes.len()));
    }
}

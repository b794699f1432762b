//! Clean paths, as the older server's router made them: without empty segments, `.` and `..`. Other paths are
//! redirected to their clean form.

use std::fmt::Write as _;

use actix_web::http::Method;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};

/// The clean form of a decoded path, or `None` if it is clean. A trailing slash stays.
pub(super) fn cleaned(path: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut clean = format!("/{}", kept.join("/"));
    if path.ends_with('/') && !kept.is_empty() {
        clean.push('/');
    }
    (clean != path).then_some(clean)
}

/// Whether a decoded path contains a slash that was encoded. The older server treated it as any slash. No name
/// has one, so no route matches.
pub(super) fn has_hidden_slash(path: &str) -> bool {
    path.contains("%2F") || path.contains("%2f")
}

/// Redirects the client to a path.
pub(super) fn redirect(request: &HttpRequest, clean: &str) -> HttpResponse {
    let mut target = encoded(clean);
    if let Some(query) = request.uri().query() {
        target.push('?');
        target.push_str(query);
    }
    let mut answer = HttpResponse::MovedPermanently();
    answer.insert_header((header::LOCATION, target.as_str()));
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return answer.finish();
    }
    answer.content_type("text/html; charset=utf-8");
    // The query is the only part that is not encoded.
    let target = target.replace('&', "&amp;").replace('\'', "&#39;");
    let target = target.replace('"', "&#34;").replace('<', "&lt;");
    answer.body(format!("<a href=\"{target}\">Moved Permanently</a>.\n\n"))
}

/// Encodes a decoded path for a URL. Every character that could have another meaning is encoded: a backslash
/// too, because browsers treat it as a slash, and two of them as the start of another site.
fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~@:".contains(&byte);
        if is_plain {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_the_older_router_did() {
        for (path, clean) in [
            ("/", "/"),
            ("/fleet/v1/units", "/fleet/v1/units"),
            ("/fleet/v1/units/", "/fleet/v1/units/"),
            ("//", "/"),
            ("/fleet//v1/units", "/fleet/v1/units"),
            ("/fleet/v1/units//", "/fleet/v1/units/"),
            ("/fleet/v1/../v1/./units", "/fleet/v1/units"),
            ("/../../x", "/x"),
            ("/x/..", "/"),
            ("/x/../", "/"),
            ("/units/...", "/units/..."),
            ("/units/a..service", "/units/a..service"),
        ] {
            let expected = (clean != path).then(|| clean.to_owned());
            assert_eq!(cleaned(path), expected, "{path}");
        }
    }

    #[test]
    fn no_path_leads_to_another_site() {
        for path in [
            "//evil.example/",
            "/./\\evil.example",
            "/x/..//\\\\evil.example",
            "/.//@evil",
        ] {
            let target = encoded(&cleaned(path).unwrap());
            assert!(
                target.starts_with('/') && !target.starts_with("//"),
                "{target}"
            );
            assert!(!target.contains('\\'), "{target}");
        }
        assert_eq!(encoded("/a b%?#\u{e9}\r\n"), "/a%20b%25%3F%23%C3%A9%0D%0A");
    }
}

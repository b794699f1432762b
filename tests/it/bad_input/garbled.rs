//! Thousands of requests that are nearly right.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{finalizing_cluster, id_of, routes};
use crate::support::{Problem as _, Random, TestApi};

const REQUESTS: u64 = 2400;
const WORKERS: u64 = 8;

/// Pieces that bodies, paths and queries are spoilt with.
const BODY_PIECES: [&[u8]; 26] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"null",
    b"true",
    b"-",
    b"1e999",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"0.1",
    b"1e-400",
    b" ",
    b"\n",
    b"\"a\":1,",
    b"//",
];
const PATH_PIECES: [&str; 16] = [
    "%00", "%ff", "%2F", "..", "/", "%", "%zz", "x", "-", "%20", "'", "$1", "%C3%A9", "\\", "{id}",
    ";",
];
const QUERIES: [&str; 16] = [
    "page",
    "size",
    "pageSize",
    "order",
    "orderBy",
    "includeDeleted",
    "kind",
    "actor",
    "action",
    "since",
    "until",
    "resource_id",
    "search",
    "fields",
    "",
    "%00",
];
const VALUES: [&str; 20] = [
    "",
    "0",
    "1",
    "-1",
    "100",
    "101",
    "99999999999999999999",
    "1.5",
    "name",
    "name desc",
    "asc",
    "created_time%20desc,name",
    "true",
    "%00",
    "%ff",
    "'; DROP TABLE resources; --",
    "NodePool",
    "2026-01-01T00:00:00Z",
    "0000-01-01T00:00:00%2B23:59",
    "%F0%9F%98%80",
];
const METHODS: [&str; 9] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW",
];
const HEADERS: [&str; 6] = [
    "",
    "Content-Encoding: gzip\r\n",
    "Accept-Encoding: gzip;q=0, *\r\n",
    "X-Request-Id: \u{e9}\r\n",
    "Content-Type: text/html\r\n",
    "If-Match: *\r\n",
];

struct Template {
    method: &'static str,
    path: String,
    body: Value,
}

#[tokio::test]
async fn garbled_requests_are_refused_and_never_break_the_server() {
    let api = Arc::new(TestApi::spawn().await);
    let templates = Arc::new(templates(&api).await);
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (api, templates) = (api.clone(), templates.clone());
            tokio::spawn(async move {
                let mut random = Random::seeded(worker);
                let mut refused = 0;
                for _ in 0..REQUESTS / WORKERS {
                    refused += u64::from(send_garbled(&api, &templates, &mut random).await);
                }
                refused
            })
        })
        .collect();
    let mut refused = 0;
    for worker in workers {
        refused += worker.await.unwrap();
    }
    // Were most of them taken, or all refused for one reason, this would test nothing.
    assert!((REQUESTS / 2..REQUESTS).contains(&refused), "{refused}");
    let cluster = api.cluster("still-there").await;
    assert_eq!(api.get(&cluster).await.status, 200);
    assert_eq!(api.get("/resources?includeDeleted=true").await.status, 200);
    assert_eq!(api.get("/audit").await.status, 200);
}

/// One request of every kind, all of them good.
async fn templates(api: &TestApi) -> Vec<Template> {
    let mut templates: Vec<_> = routes(api)
        .await
        .into_iter()
        .map(|route| Template {
            method: route.method,
            path: route.path,
            body: route.body,
        })
        .collect();
    let cluster = api.cluster("read").await;
    let id = id_of(&cluster);
    let gone = finalizing_cluster(api, "gone").await;
    let mut push = |method, path: &str, body| {
        let path = path.to_owned();
        templates.push(Template { method, path, body });
    };
    for path in [
        "/clusters",
        "/nodepools",
        "/resources",
        "/audit",
        &cluster,
        &format!("/resources/{id}"),
    ] {
        push("GET", path, Value::Null);
    }
    for suffix in ["nodepools", "statuses"] {
        push("GET", &format!("{cluster}/{suffix}"), Value::Null);
    }
    push(
        "POST",
        "/nodepools",
        json!({"kind": "NodePool", "name": "abc", "spec": {}}),
    );
    push(
        "POST",
        &format!("{gone}/force-delete"),
        json!({"reason": "over"}),
    );
    push("DELETE", "/clusters/none", Value::Null);
    templates
}

/// Sends one; true if it was refused.
async fn send_garbled(api: &TestApi, templates: &[Template], random: &mut Random) -> bool {
    let template = &templates[random.below(templates.len())];
    let mut path = format!("/api/hyperfleet/v1{}", template.path);
    let mut method = template.method;
    let mut headers = "";
    let mut body = match &template.body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    for _ in 0..=random.below(3) {
        match random.below(10) {
            0 => method = random.pick(&METHODS),
            1 => headers = random.pick(&HEADERS),
            2 | 3 => {
                let start = "/api/hyperfleet/v1".len();
                let at = start + random.below(path.len() - start + 1);
                path.insert_str(at, random.pick(&PATH_PIECES));
            }
            4 | 5 => {
                path.push(if path.contains('?') { '&' } else { '?' });
                let value = random.pick(&VALUES).replace(' ', "%20");
                path = format!("{path}{}={value}", random.pick(&QUERIES));
            }
            _ => spoil(&mut body, random),
        }
    }
    let answer = api.request_raw(method, &path, headers, &body).await;
    let excerpt = format!(
        "{method} {path} {headers:?} {}",
        String::from_utf8_lossy(&body)
    );
    let answer = answer.unwrap_or_else(|| panic!("no answer to {excerpt}"));
    assert!(
        answer.status < 500,
        "{excerpt}: {} {}",
        answer.head,
        answer.body
    );
    if answer.status >= 400 && method != "HEAD" {
        // Compressed ones are read elsewhere.
        if answer.header("content-encoding").is_none() {
            answer.code();
        }
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{excerpt}");
    }
    answer.status >= 400
}

fn spoil(body: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(body.len() + 1);
    let end = at + random.below((body.len() - at).min(12) + 1);
    match random.below(5) {
        0 => body.truncate(at),
        1 => drop(body.drain(at..end)),
        2 => {
            let again = body[at..end].to_vec();
            body.splice(at..at, again);
        }
        3 => {
            if let Some(byte) = body.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        _ => {
            let piece = random.pick(&BODY_PIECES);
            body.splice(at..end, piece.iter().copied());
        }
    }
}

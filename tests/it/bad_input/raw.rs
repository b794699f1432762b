//! Requests that a well-meaning client library would not send.

use serde_json::json;

use super::{id_of, report};
use crate::support::{Problem as _, TestApi, Then};

const BASE: &str = "/api/hyperfleet/v1";

#[tokio::test]
async fn a_body_that_ends_early_changes_nothing() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let new = json!({"kind": "Cluster", "name": "half", "spec": {}}).to_string();
    let change = json!({"spec": {"a": 1}}).to_string();
    let report = report(&api).to_string();
    for (method, path, body) in [
        ("POST", "/clusters".to_owned(), &new),
        ("PATCH", cluster.clone(), &change),
        ("PUT", format!("{cluster}/statuses"), &report),
    ] {
        // The body is complete as it is; the length says that it is not.
        let length = body.len() + 10;
        let request = format!(
            "{method} {BASE}{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let answer = api.send_raw(request.as_bytes(), Then::Finish).await;
        if let Some(answer) = answer {
            assert_eq!(answer.status, 400, "{} {}", answer.head, answer.body);
        }
    }
    assert_eq!(api.get("/clusters").await.body["total"], 1);
    assert_eq!(api.get(&cluster).await.body["generation"], 1);
    assert_eq!(
        api.get(&format!("{cluster}/statuses")).await.body["total"],
        0
    );
}

#[tokio::test]
async fn a_body_that_never_ends_keeps_nobody_waiting() {
    let api = TestApi::spawn().await;
    // More of them than there are connections to the database.
    let mut waiting = Vec::new();
    for _ in 0..16 {
        let mut stream = tokio::net::TcpStream::connect(api.address()).await.unwrap();
        let request =
            format!("POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
            .await
            .unwrap();
        waiting.push(stream);
    }
    let cluster = api.cluster("abc").await;
    assert_eq!(api.get(&cluster).await.status, 200);
    drop(waiting);
}

#[tokio::test]
async fn odd_paths_lead_nowhere_and_say_so() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let id = id_of(&cluster);
    let long = "x".repeat(10_000);
    for path in [
        "/".to_owned(),
        "//".to_owned(),
        "/api".to_owned(),
        "/api/hyperfleet/v1".to_owned(),
        "/api/hyperfleet/v2/clusters".to_owned(),
        format!("/{long}"),
        format!("{BASE}/{long}"),
        format!("{BASE}/clusters/{long}"),
        format!("{BASE}/clusters/{id}/{long}"),
        format!("{BASE}/clusters/{}", "%61".repeat(3000)),
        format!("{BASE}//clusters"),
        format!("{BASE}/clusters//"),
        format!("{BASE}/./clusters"),
        format!("{BASE}/x/../clusters"),
        format!("{BASE}/clusters/../clusters"),
        format!("{BASE}/clusters/.."),
        format!("{BASE}/clusters/%2e%2e"),
        format!("{BASE}%2Fclusters"),
        format!("{BASE}/clusters%2F{id}"),
        format!("{BASE}/clusters/{id}%2Fstatuses"),
        format!("{BASE}/clusters/%2F"),
        format!("{BASE}/clusters/%"),
        format!("{BASE}/clusters/%zz"),
        format!("{BASE}/clusters/%ff"),
        format!("{BASE}/clusters/%C3%28"),
        format!("{BASE}/clusters/{}", id.to_uppercase()),
        format!("{BASE}/clusters/{}", id.replace('-', "")),
        format!("{BASE}/clusters/%7B{id}%7D"),
        format!("{BASE}/clusters/{id}%20"),
        format!("{BASE}/clusters/{id};a=b"),
        format!("{BASE}/CLUSTERS"),
        format!("{BASE}/clusters/'%20OR%201=1--"),
        format!("{BASE}/clusters/{id}/nodepools/{id}"),
        format!("{BASE}/nodepools/{id}"),
        format!("{BASE}/clusters/{id}/clusters"),
        format!("{BASE}/clusters/{id}/statuses/x"),
    ] {
        let answer = api
            .request_raw("GET", &path, "", b"")
            .await
            .expect("an answer");
        let excerpt = &path[..path.len().min(200)];
        assert_eq!(answer.status, 404, "{excerpt}: {}", answer.body);
        assert!(
            answer.code().starts_with("NTF-"),
            "{excerpt}: {}",
            answer.body
        );
    }
    let answer = api
        .request_raw("GET", &format!("{BASE}/clusters/?"), "", b"")
        .await;
    assert_eq!(answer.unwrap().status, 200);
}

#[tokio::test]
async fn a_known_path_says_which_methods_it_has() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    for (path, allow) in [
        ("/clusters".to_owned(), "GET, HEAD, POST"),
        ("/resources".to_owned(), "GET, HEAD, POST"),
        ("/audit".to_owned(), "GET, HEAD"),
        (cluster.clone(), "DELETE, GET, HEAD, PATCH"),
        (format!("{cluster}/statuses"), "GET, HEAD, PUT"),
        (format!("{cluster}/force-delete"), "POST"),
    ] {
        for method in ["TRACE", "OPTIONS", "PUT", "POST", "PATCH", "get", "BREW"] {
            if allow.contains(method) {
                continue;
            }
            let answer = api
                .request_raw(method, &format!("{BASE}{path}"), "", b"{")
                .await
                .unwrap();
            assert_eq!(
                (answer.status, answer.code()),
                (405, "VAL-008"),
                "{method} {path}"
            );
            assert_eq!(answer.header("allow"), Some(allow));
        }
    }
}

/// That number of headers.
fn headers(count: usize) -> String {
    (0..count).fold(String::new(), |all, n| all + &format!("X-{n}: {n}\r\n"))
}

#[tokio::test]
async fn many_and_long_headers_do_no_harm() {
    let api = TestApi::spawn().await;
    let path = format!("{BASE}/clusters");
    let long = format!("X-Long: {}\r\n", "x".repeat(5000));
    let answer = api.request_raw("GET", &path, &long, b"").await.unwrap();
    assert_eq!(answer.status, 200);
    let answer = api
        .request_raw("GET", &path, &headers(80), b"")
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    // Beyond its limits the server need not listen to the end, but it must not fall over.
    for headers in [
        headers(5000),
        format!("X-Long: {}\r\n", "x".repeat(2_000_000)),
    ] {
        if let Some(answer) = api.request_raw("GET", &path, &headers, b"").await {
            assert!((400..500).contains(&answer.status), "{}", answer.head);
        }
    }
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn only_sane_request_ids_are_taken_over() {
    let api = TestApi::spawn().await;
    let path = format!("{BASE}/clusters/none");
    let a = |count| "a".repeat(count);
    for (id, is_used) in [
        (&*a(128), true),
        ("A.b_c-9", true),
        (&a(129), false),
        (&a(5000), false),
        ("a b", false),
        ("a/b", false),
        ("ä", false),
        ("<script>", false),
        ("", false),
    ] {
        let header = format!("X-Request-Id: {id}\r\n");
        let answer = api.request_raw("GET", &path, &header, b"").await.unwrap();
        assert_eq!(answer.code(), "NTF-001");
        let found = answer.header("x-request-id").unwrap();
        assert_eq!(found == id, is_used, "{id:?} {found:?}");
    }
}

#[tokio::test]
async fn what_is_no_http_is_turned_away() {
    let api = TestApi::spawn().await;
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET /api/hyperfleet HTTP/9.9\r\n\r\n",
        b"GET /api/hyper fleet HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\0\0\0\0",
    ] {
        if let Some(answer) = api.send_raw(bytes, Then::Finish).await {
            assert!((400..500).contains(&answer.status), "{bytes:?}: {}", answer.head);
        }
    }
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn pages_and_orders_out_of_range_are_named() {
    let api = TestApi::spawn().await;
    api.cluster("abc").await;
    let max = i64::MAX;
    for (query, field) in [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=100001", "page"),
        ("page=99999999999999999999999", "page"),
        ("page=1e3", "page"),
        ("page=0x10", "page"),
        (&format!("page={max}"), "page"),
        ("size=0", "size"),
        ("size=101", "size"),
        ("size=-5", "size"),
        (&format!("size={max}"), "size"),
        ("pageSize=0", "pageSize"),
        ("pageSize=-1", "pageSize"),
        ("pageSize=99999999999999999999", "pageSize"),
        ("includeDeleted=yes", "includeDeleted"),
    ] {
        for path in ["/clusters", "/resources"] {
            let answer = api.get(&format!("{path}?{query}")).await;
            assert_eq!((answer.status, answer.code()), (400, "VAL-000"), "{query}");
            assert_eq!(answer.fields(), [field], "{query}");
        }
    }
    for path in ["/clusters", "/resources", "/audit"] {
        let answer = api.get(&format!("{path}?page=100000&size=100")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(
            (&answer.body["items"], &answer.body["total"]),
            (&json!([]), &json!(1))
        );
    }
    for order in [
        "nonsense",
        "name%20up",
        "name;drop",
        "spec",
        "name%20asc%20asc",
        &"name,".repeat(17),
    ] {
        let answer = api.get(&format!("/clusters?order={order}")).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "VAL-005"),
            "{order}: {}",
            answer.body
        );
    }
}

//! How large and how deep a body may be.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::{assert_malformed, finalizing_cluster, report, routes};
use crate::support::{Problem as _, TestApi, Then};

const MEBIBYTE: usize = 1024 * 1024;

/// A valid body of a new cluster with exactly that number of bytes.
fn cluster_of(bytes: usize, name: &str) -> String {
    let empty = json!({"kind": "Cluster", "name": name, "spec": {"a": ""}}).to_string();
    let filling = "x".repeat(bytes - empty.len());
    let body = json!({"kind": "Cluster", "name": name, "spec": {"a": filling}}).to_string();
    assert_eq!(body.len(), bytes);
    body
}

#[tokio::test]
async fn a_body_of_one_mebibyte_is_taken_and_a_byte_more_is_not() {
    let api = TestApi::spawn().await;
    let body = cluster_of(MEBIBYTE, "large");
    let made = api.send_bytes("POST", "/clusters", body).await;
    assert_eq!(made.status, 201);
    let found = api.get(&format!("/clusters/{}", made.id())).await;
    assert_eq!(found.body["spec"], made.body["spec"]);

    for route in routes(&api).await.iter().step_by(2) {
        let text = route.body.to_string();
        // White space counts as well.
        let body = " ".repeat(MEBIBYTE + 1 - text.len()) + &text;
        let path = format!("/api/hyperfleet/v1{}", route.path);
        let answer = api
            .request_raw(route.method, &path, "", body.as_bytes())
            .await;
        let answer = answer.expect("an answer, not a closed connection");
        assert_eq!((answer.status, answer.code()), (413, "LMT-002"), "{path}");
        assert_eq!(answer.body["instance"], path);
    }
    let path = format!("{}/force-delete", finalizing_cluster(&api, "gone").await);
    let answer = api
        .post(&path, json!({"reason": "x".repeat(MEBIBYTE)}))
        .await;
    assert_eq!((answer.status, answer.code()), (413, "LMT-002"));
}

#[tokio::test]
async fn a_body_without_a_length_is_measured_too() {
    let api = TestApi::spawn().await;
    for (bytes, name, status) in [(MEBIBYTE, "fits", 201), (MEBIBYTE + 1, "exceeds", 413)] {
        let mut request = b"POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in cluster_of(bytes, name).as_bytes().chunks(60_000) {
            write!(request, "{:x}\r\n", chunk.len()).unwrap();
            request.extend_from_slice(chunk);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"0\r\n\r\n");
        let answer = api.send_raw(&request, Then::Wait).await.expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.head);
    }
}

fn gzipped(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_bodies_are_measured_by_what_comes_out() {
    let api = TestApi::spawn().await;
    let path = "/api/hyperfleet/v1/clusters";
    let gzip = "Content-Encoding: gzip\r\n";
    let small = gzipped(cluster_of(1000, "small").as_bytes());
    let answer = api.request_raw("POST", path, gzip, &small).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.body);
    let bomb = gzipped(&vec![b' '; 32 * MEBIBYTE]);
    assert!(bomb.len() < MEBIBYTE);
    let answer = api.request_raw("POST", path, gzip, &bomb).await.unwrap();
    assert_eq!((answer.status, answer.code()), (413, "LMT-002"));
    let cut = &small[..small.len() / 2];
    for (headers, body) in [(gzip, cut), (gzip, b"no gzip at all"), (gzip, b"")] {
        let answer = api.request_raw("POST", path, headers, body).await.unwrap();
        assert_eq!(
            (answer.status, answer.code()),
            (400, "VAL-006"),
            "{}",
            answer.body
        );
        // In our words, not those of a library.
        for word in ["Custom", "Some(", "None"] {
            assert!(!answer.body.to_string().contains(word), "{}", answer.body);
        }
    }
    let answer = api
        .request_raw("POST", path, "Content-Encoding: br\r\n", b"{}")
        .await
        .unwrap();
    assert_eq!((answer.status, answer.code()), (415, "VAL-006"));
}

#[tokio::test]
async fn nesting_of_64_levels_is_taken_and_65_are_not() {
    let api = TestApi::spawn().await;
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    for (number, (levels, is_taken)) in [(64, true), (65, false), (10_000, false), (200_000, false)]
        .into_iter()
        .enumerate()
    {
        // The body and `spec` are the first two.
        let arrays = format!(
            r#"{{"kind":"Cluster","name":"a{number}0","spec":{{"a":{}}}}}"#,
            nested(levels - 2)
        );
        let maps = format!(
            r#"{{"kind":"Cluster","name":"b{number}0","spec":{}}}"#,
            objects((levels - 1).min(150_000))
        );
        for body in [arrays, maps] {
            let answer = api.send_bytes("POST", "/clusters", body).await;
            if is_taken {
                assert_eq!(answer.status, 201, "{levels}: {}", answer.body);
                let path = format!("/clusters/{}", answer.id());
                assert_eq!(api.get(&path).await.body["spec"], answer.body["spec"]);
            } else {
                assert_malformed(&answer, "nested deeper than 64 levels", &levels.to_string());
            }
        }
    }
    // In members that nobody reads, too: nobody should have to carry them.
    let body = format!(
        r#"{{"kind":"Cluster","name":"abc","spec":{{}},"other":{}}}"#,
        nested(64)
    );
    assert_malformed(
        &api.send_bytes("POST", "/clusters", body).await,
        "nested deeper",
        "other",
    );
    let path = format!("{}/statuses", api.cluster("abc").await);
    let report = report(&api).to_string();
    for (levels, status) in [(62, 201), (63, 400)] {
        let body = report.replace("\"thing\"", &nested(levels));
        assert_eq!(
            api.send_bytes("PUT", &path, body).await.status,
            status,
            "{levels}"
        );
    }
}

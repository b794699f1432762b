//! gzip in both directions, and how large a body may be.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};

use crate::support::{Answer, TestApi};

async fn get(api: &TestApi, path: &str, accept_encoding: &[&str]) -> Answer {
    let mut request = api.client.get(format!("{}{path}", api.base));
    for value in accept_encoding {
        request = request.header("accept-encoding", *value);
    }
    Answer::of(request.send().await.unwrap()).await
}

async fn post_gzipped(api: &TestApi, path: &str, bytes: Vec<u8>) -> Answer {
    send_packed(api, "POST", path, &["gzip"], bytes).await
}

/// Sends a body with these lines of `Content-Encoding`.
async fn send_packed(
    api: &TestApi,
    method: &str,
    path: &str,
    codings: &[&str],
    bytes: Vec<u8>,
) -> Answer {
    let url = format!("{}{path}", api.base);
    let mut request = api.client.request(method.parse().unwrap(), url);
    for coding in codings {
        request = request.header("content-encoding", *coding);
    }
    Answer::of(request.body(bytes).send().await.unwrap()).await
}

fn gunzipped(answer: &Answer) -> Value {
    let mut text = String::new();
    GzDecoder::new(&answer.bytes[..])
        .read_to_string(&mut text)
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A cluster whose body has that number of bytes.
fn cluster_of(bytes: usize) -> Vec<u8> {
    let frame = r#"{"kind":"Cluster","name":"large","spec":{"a":""}}"#;
    let padding = "x".repeat(bytes - frame.len());
    let body = frame.replace(r#""a":"""#, &format!(r#""a":"{padding}""#));
    assert_eq!(body.len(), bytes);
    body.into_bytes()
}

#[tokio::test]
async fn who_accepts_gzip_gets_gzip() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("packed").await;
    for path in ["/clusters", &cluster, "/audit"] {
        let plain = get(&api, path, &[]).await;
        for accept in [
            "gzip",
            "GZIP",
            "br, gzip;q=0.1",
            "*",
            "gzip;q=1, identity;q=0",
        ] {
            let packed = get(&api, path, &[accept]).await;
            assert_eq!(packed.status, 200, "{accept}");
            assert_eq!(packed.header("content-encoding"), Some("gzip"), "{accept}");
            assert_eq!(
                packed.header("content-type"),
                Some("application/json"),
                "{accept}"
            );
            assert_eq!(gunzipped(&packed), plain.body, "{accept}");
        }
    }
}

#[tokio::test]
async fn a_packed_answer_varies_by_encoding_too() {
    let api = TestApi::spawn().await;
    let packed = get(&api, "/clusters", &["gzip"]).await;
    let vary: Vec<_> = packed
        .headers
        .get_all("vary")
        .iter()
        .flat_map(|value| value.to_str().unwrap().split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    assert!(vary.contains(&"authorization".to_owned()), "{vary:?}");
    assert!(vary.contains(&"accept-encoding".to_owned()), "{vary:?}");
}

#[tokio::test]
async fn nobody_is_refused_for_what_they_accept() {
    let api = TestApi::spawn().await;
    for accept in [
        "",
        "identity",
        "identity;q=0",
        "gzip;q=0",
        "gzip;q=0, identity;q=0",
        "*;q=0",
        "br",
        "deflate, zstd",
        "nonsense;;q",
    ] {
        let answer = get(&api, "/clusters", &[accept]).await;
        assert_eq!(answer.status, 200, "{accept:?}");
        assert_eq!(answer.header("content-encoding"), None, "{accept:?}");
        assert_eq!(answer.body["kind"], "ClusterList", "{accept:?}");
    }
}

#[tokio::test]
async fn an_answer_without_a_body_has_no_encoding() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("discarded").await;
    let report = json!({"adapter": "dns", "observed_generation": 2});
    let request = api
        .client
        .put(format!("{}{cluster}/statuses", api.base))
        .header("accept-encoding", "gzip")
        .body(report.to_string());
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!((answer.status, answer.bytes.len()), (204, 0));
    assert_eq!(answer.header("content-encoding"), None);
    assert_eq!(answer.header("content-type"), None);
}

#[tokio::test]
async fn an_error_can_be_read_by_who_accepts_gzip() {
    let api = TestApi::spawn().await;
    for (path, code) in [("/clusters/nobody", "NTF-001"), ("/nowhere", "NTF-000")] {
        let answer = get(&api, path, &["gzip"]).await;
        let body = match answer.header("content-encoding") {
            Some("gzip") => gunzipped(&answer),
            _ => answer.body.clone(),
        };
        assert_eq!(body["code"], format!("HYPERFLEET-{code}"), "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
    }
}

#[tokio::test]
async fn a_body_may_be_gzipped() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "Cluster", "name": "zipped", "spec": {"a": 1}});
    let answer = post_gzipped(&api, "/clusters", gzipped(body.to_string().as_bytes())).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert_eq!(answer.body["spec"], json!({"a": 1}));
}

#[tokio::test]
async fn a_body_may_be_packed_by_other_names_too() {
    let api = TestApi::spawn().await;
    let body = |name: &str| {
        let body = json!({"kind": "Cluster", "name": name, "spec": {}});
        body.to_string().into_bytes()
    };
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
    deflated.write_all(&body("deflated")).unwrap();
    for (name, coding, bytes) in [
        ("deflated", "deflate", deflated.finish().unwrap()),
        ("loud", "GZIP", gzipped(&body("loud"))),
        ("plain", "identity", body("plain")),
        ("nothing", "", body("nothing")),
    ] {
        let answer = send_packed(&api, "POST", "/clusters", &[coding], bytes).await;
        assert_eq!((answer.status, &answer.body["name"]), (201, &json!(name)));
    }
}

#[tokio::test]
async fn unknown_encodings_are_refused_with_the_supported_ones() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("packed").await;
    let body = json!({"kind": "Cluster", "name": "readable", "spec": {"a": 1}, "reason": "r"});
    let body = body.to_string().into_bytes();
    let several = gzipped(&gzipped(&body));
    for (codings, bytes) in [
        (&["br"][..], &body),
        (&["zstd"], &body),
        (&["x-compress"], &body),
        (&["none"], &body),
        (&["aws-chunked"], &body),
        (&["\u{e4}"], &body),
        (&["gzip, gzip"], &several),
        (&["gzip", "gzip"], &several),
        (&["identity", "gzip"], &gzipped(&body)),
    ] {
        for (method, path) in [
            ("POST", "/clusters".to_owned()),
            ("PATCH", cluster.clone()),
            ("PUT", format!("{cluster}/statuses")),
            ("POST", format!("{cluster}/force-delete")),
        ] {
            let answer = send_packed(&api, method, &path, codings, bytes.clone()).await;
            assert_eq!(answer.problem(), (415, "VAL-006"), "{method} {codings:?}");
            let understood = "gzip, deflate, identity";
            assert_eq!(answer.header("accept-encoding"), Some(understood));
            assert!(answer.detail().contains(understood), "{}", answer.detail());
        }
    }
    // Nobody reads what comes with these.
    for method in ["GET", "DELETE"] {
        let answer = send_packed(&api, method, &cluster, &["br"], body.clone()).await;
        assert!([200, 202].contains(&answer.status), "{method}");
    }
    assert_eq!(api.get("/clusters").await.body["total"], 0);
}

/// RFC 1952, section 2.2: a gzip file is a sequence of members. Decoders that stop after the first one lose the rest.
#[tokio::test]
async fn a_gzip_body_of_several_members_is_read_completely() {
    let api = TestApi::spawn().await;
    let join = |parts: &[&[u8]]| parts.concat();
    let complete = br#"{"kind":"Cluster","name":"complete","spec":{}}"#;
    let two = join(&[
        &gzipped(br#"{"kind":"Cluster","name":"two","#),
        &gzipped(br#""spec":{}}"#),
    ]);
    let answer = post_gzipped(&api, "/clusters", two).await;
    assert_eq!((answer.status, &answer.body["name"]), (201, &json!("two")));
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
    deflated.write_all(complete).unwrap();
    let deflated = deflated.finish().unwrap();
    for (what, coding, body) in [
        (
            "a second value",
            "gzip",
            join(&[&gzipped(complete), &gzipped(b",\"labels\":{}}")]),
        ),
        ("text", "gzip", join(&[&gzipped(complete), b"not gzip"])),
        ("zeros", "gzip", join(&[&gzipped(complete), &[0; 512]])),
        (
            "half a member",
            "gzip",
            join(&[&gzipped(complete), &gzipped(b" ")[..12]]),
        ),
        ("text", "deflate", join(&[&deflated, b"not deflate"])),
        ("a second stream", "deflate", join(&[&deflated, &deflated])),
    ] {
        let answer = send_packed(&api, "POST", "/clusters", &[coding], body).await;
        assert_eq!(answer.problem(), (400, "VAL-006"), "{coding} and {what}");
    }
    assert_eq!(api.get("/clusters").await.body["total"], 1);
}

#[tokio::test]
async fn many_gzip_members_have_the_limit_of_one_body() {
    let api = TestApi::spawn().await;
    let member = gzipped(&[b' '; 2048]);
    let too_large = post_gzipped(&api, "/clusters", member.repeat(1000)).await;
    assert_eq!(too_large.problem(), (413, "LMT-002"), "{}", too_large.body);
    // As many as fit into a body: it takes a moment, and no memory.
    let empty = gzipped(b"");
    let mut many = empty.repeat(1_000_000 / empty.len());
    many.extend(gzipped(br#"{"kind":"Cluster","name":"many","spec":{}}"#));
    let answer = post_gzipped(&api, "/clusters", many).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
}

#[tokio::test]
async fn what_is_not_gzip_is_malformed() {
    let api = TestApi::spawn().await;
    let answer = post_gzipped(&api, "/clusters", b"{\"kind\":\"Cluster\"}".to_vec()).await;
    assert_eq!(answer.problem(), (400, "VAL-006"), "{}", answer.body);
}

#[tokio::test]
async fn a_body_may_have_a_mebibyte() {
    let api = TestApi::spawn().await;
    let largest = cluster_of(1024 * 1024);
    let answer = api.send_bytes("POST", "/clusters", largest).await;
    assert_eq!(answer.status, 201, "{}", answer.detail());
}

#[tokio::test]
async fn a_larger_body_is_refused_packed_or_not() {
    let api = TestApi::spawn().await;
    let body = cluster_of(1024 * 1024 + 1);
    let packed = gzipped(&body);
    assert!(packed.len() < 10_000);
    let plain = api.send_bytes("POST", "/clusters", body).await;
    let packed = post_gzipped(&api, "/clusters", packed).await;
    for answer in [plain, packed] {
        assert_eq!(answer.problem(), (413, "LMT-002"), "{}", answer.body);
        assert_eq!(answer.body["title"], "Payload Too Large");
        assert_eq!(
            answer.body["type"],
            "https://api.hyperfleet.io/errors/payload-too-large"
        );
    }
    assert_eq!(api.get("/clusters").await.body["total"], 0);
}

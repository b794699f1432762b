//! Texts that are none, or that the database cannot keep.

use serde_json::{Value, json};

use super::{assert_malformed, finalizing_cluster, id_of, report, routes};
use crate::support::{Problem as _, TestApi};

#[tokio::test]
async fn no_body_and_half_a_body_are_malformed() {
    let api = TestApi::spawn().await;
    let mut bodies: Vec<_> = routes(&api)
        .await
        .into_iter()
        .map(|r| (r.method, r.path, r.body))
        .collect();
    let forced = finalizing_cluster(&api, "gone").await;
    bodies.push((
        "POST",
        format!("{forced}/force-delete"),
        json!({"reason": "x"}),
    ));
    for (method, path, body) in bodies {
        for blank in ["", " ", "\n\t\r "] {
            let answer = api.send_bytes(method, &path, blank).await;
            assert_malformed(&answer, "Request body is required but was empty", &path);
        }
        let text = body.to_string();
        for length in (1..text.len()).step_by(3).chain([text.len() - 1]) {
            let answer = api
                .send_bytes(method, &path, text[..length].to_owned())
                .await;
            assert_malformed(&answer, "Invalid JSON in request body", &text[..length]);
        }
        for behind in ["}", "x", "{}", ",", "\u{feff}"] {
            let answer = api
                .send_bytes(method, &path, format!("{text}{behind}"))
                .await;
            assert_malformed(&answer, "Invalid JSON in request body", behind);
        }
        let answer = api
            .send_bytes(method, &path, format!("\u{feff}{text}"))
            .await;
        assert_malformed(&answer, "Invalid JSON in request body", "byte order mark");
    }
}

/// Every text in a body, names of members included, as the bytes of a body that has something
/// else in its place.
fn texts_replaced(body: &Value, by: &[u8]) -> Vec<Vec<u8>> {
    let text = body.to_string();
    let quotes: Vec<_> = text.match_indices('"').map(|(at, _)| at).collect();
    let texts = quotes.chunks(2).map(|pair| (pair[0] + 1, pair[1]));
    texts
        .map(|(start, end)| [&text.as_bytes()[..start], by, &text.as_bytes()[end..]].concat())
        .collect()
}

#[tokio::test]
async fn texts_without_meaning_are_refused_wherever_they_stand() {
    let api = TestApi::spawn().await;
    let mut bodies: Vec<_> = routes(&api)
        .await
        .into_iter()
        .map(|r| (r.method, r.path, r.body))
        .collect();
    let forced = finalizing_cluster(&api, "gone").await;
    bodies.push((
        "POST",
        format!("{forced}/force-delete"),
        json!({"reason": "x"}),
    ));
    for (method, path, body) in bodies {
        for by in [
            &br"\u0000"[..],
            br"a\u0000b",
            b"a\0b",
            b"\xff",
            b"\xc3\x28",
            b"\xed\xa0\x80", // half a character, as UTF-8 would spell it
            br"\ud800",
            br"\udc00\ud800",
            br"a\ud83db",
            br"\x41",
            b"a\nb",
        ] {
            for sent in texts_replaced(&body, by) {
                let printed = String::from_utf8_lossy(&sent).into_owned();
                let answer = api.send_bytes(method, &path, sent).await;
                assert_eq!(
                    answer.problem(),
                    (400, "VAL-006"),
                    "{printed}: {}",
                    answer.body
                );
            }
        }
    }
    assert_eq!(api.get("/clusters").await.body["total"], 1);
}

#[tokio::test]
async fn all_other_characters_come_back_as_they_were() {
    let api = TestApi::spawn().await;
    let text = "\u{1}\t\n\u{7f}\u{80}é\u{2028}\u{fffe}\u{ffff}😀\u{10ffff}\"\\/<>&'%$1{}";
    let spec = json!({text: text, "nested": [{text: [text]}], "": ""});
    let made = api
        .post(
            "/clusters",
            json!({"kind": "Cluster", "name": "abc", "spec": spec}),
        )
        .await;
    assert_eq!(
        (made.status, &made.body["spec"]),
        (201, &spec),
        "{}",
        made.body
    );
    let path = format!("/clusters/{}", made.id());
    assert_eq!(api.get(&path).await.body["spec"], spec);
    assert_eq!(
        api.patch(&path, json!({"spec": spec})).await.body["generation"],
        1
    );

    let mut body = report(&api);
    body["adapter"] = json!(text);
    body["data"] = spec.clone();
    body["conditions"][0]["message"] = json!(text);
    body["conditions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": text, "status": "Unknown"}));
    let path = format!("{path}/statuses");
    assert_eq!(api.put(&path, body).await.status, 201);
    let listed = api.get(&path).await;
    let stored = &listed.body["items"][0];
    assert_eq!((&stored["adapter"], &stored["data"]), (&json!(text), &spec));
    assert_eq!(stored["conditions"][0]["message"], text);
    assert_eq!(stored["conditions"][3]["type"], text);
}

#[tokio::test]
async fn nul_in_paths_and_queries_finds_nothing_and_breaks_nothing() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let id = id_of(&cluster);
    for (method, path) in [
        ("GET", "/clusters/%00".to_owned()),
        ("GET", format!("/clusters/{id}%00")),
        ("GET", format!("/resources/%00{id}")),
        ("GET", format!("/clusters/{id}%00/nodepools")),
        ("GET", "/clusters/%00/nodepools/%00".to_owned()),
        ("GET", format!("/clusters/{id}/nodepools/%00")),
        ("GET", "/clusters/%00/statuses".to_owned()),
        ("GET", "/cl%00usters".to_owned()),
        ("PATCH", "/clusters/%00".to_owned()),
        ("PUT", "/clusters/%00/statuses".to_owned()),
        ("DELETE", "/clusters/%00".to_owned()),
        ("POST", "/clusters/%00/force-delete".to_owned()),
        ("POST", "/clusters/%00/nodepools".to_owned()),
    ] {
        let body = match method {
            "PATCH" => json!({"spec": {}}),
            "PUT" => report(&api),
            "POST" if path.ends_with("force-delete") => json!({"reason": "x"}),
            "POST" => json!({"kind": "NodePool", "name": "abc", "spec": {}}),
            _ => Value::Null,
        };
        let answer = api.send(method, &path, body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
        assert!(answer.code().starts_with("NTF-"), "{}", answer.body);
    }
    for query in [
        "page=%00",
        "size=%00",
        "pageSize=1%00",
        "order=%00",
        "order=name%00",
        "orderBy=%00",
        "orderBy=name&order=%00",
        "includeDeleted=%00",
        "kind=%00",
    ] {
        let answer = api.get(&format!("/resources?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
        assert!(answer.code().starts_with("VAL-"));
    }
    for query in [
        "resource_id=%00",
        "kind=%00",
        "actor=a%00",
        "action=%00",
        "since=%00",
        "until=%00",
    ] {
        let answer = api.get(&format!("/audit?{query}")).await;
        assert_eq!((answer.status, answer.code()), (400, "VAL-000"), "{query}");
    }
    for query in ["%00=1", "page=1&%ff=%fe", "%", "=", "&&&", "a=%zz"] {
        let answer = api.get(&format!("/clusters?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    }
}

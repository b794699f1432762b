//! At the limit and one past it.

use serde_json::{Map, Value, json};

use super::{assert_violation, finalizing_cluster, report, with};
use crate::support::{Problem as _, TestApi};

const PATTERN: &str = "name must start and end with lowercase letter or number, and contain only lowercase letters, numbers, and hyphens";

#[tokio::test]
async fn names_fit_their_kind() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let pools = format!("{cluster}/nodepools");
    let a = |count| "a".repeat(count);
    for (kind, path, name, message) in [
        ("Cluster", "/clusters", a(3), None),
        (
            "Cluster",
            "/clusters",
            a(2),
            Some("name must be at least 3 characters"),
        ),
        ("Cluster", "/clusters", a(53), None),
        (
            "Cluster",
            "/clusters",
            a(54),
            Some("name must be at most 53 characters"),
        ),
        ("Cluster", "/resources", a(52), None),
        (
            "Cluster",
            "/resources",
            a(54),
            Some("name must be at most 53 characters"),
        ),
        ("NodePool", &pools, a(3), None),
        ("NodePool", &pools, a(15), None),
        (
            "NodePool",
            &pools,
            a(16),
            Some("name must be at most 15 characters"),
        ),
        (
            "Cluster",
            "/clusters",
            String::new(),
            Some("name is required"),
        ),
        ("Cluster", "/clusters", "0-9".into(), None),
        ("Cluster", "/clusters", "a--b".into(), None),
        ("Cluster", "/clusters", "-ab".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "ab-".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "aBc".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "a.b".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "a b".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "abc\n".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "äöü".into(), Some(PATTERN)),
        ("Cluster", "/clusters", "ａｂｃ".into(), Some(PATTERN)),
        (
            "Cluster",
            "/clusters",
            a(100_000),
            Some("name must be at most 53 characters"),
        ),
    ] {
        let body = json!({"kind": kind, "name": name, "spec": {}});
        let answer = api.post(path, body).await;
        match message {
            None => assert_eq!(answer.status, 201, "{name}: {}", answer.body),
            Some(message) => assert_violation(&answer, "VAL-000", "name", message, &name),
        }
    }
}

#[tokio::test]
async fn labels_fit_kubernetes_and_each_bad_one_is_named() {
    let api = TestApi::spawn().await;
    let n = |count| "n".repeat(count);
    let prefix = format!("{0}.{0}.{0}.{1}", n(63), n(61));
    let good = json!({
        n(63): n(63), format!("{prefix}/a"): "", "a.b/C_d-e.f": "1.2_3-X", "0": "0",
    });
    let made = api
        .post(
            "/clusters",
            json!({"kind": "Cluster", "name": "abc", "spec": {}, "labels": good}),
        )
        .await;
    assert_eq!(
        (made.status, &made.body["labels"]),
        (201, &good),
        "{}",
        made.body
    );
    let path = format!("/clusters/{}", made.id());
    assert_eq!(api.get(&path).await.body["labels"], good);

    let (key, value) = ("labels", "labels[k]");
    let cases = [
        (n(64), "v".to_owned(), key),
        (format!("{prefix}/ab"), "v".to_owned(), key),
        (format!("{prefix}n/a"), "v".to_owned(), key),
        (String::new(), "v".to_owned(), key),
        ("a/b/c".to_owned(), "v".to_owned(), key),
        ("A/b".to_owned(), "v".to_owned(), key),
        ("ä".to_owned(), "v".to_owned(), key),
        ("k".to_owned(), n(64), value),
        ("k".to_owned(), "a b".to_owned(), value),
        ("k".to_owned(), "-a".to_owned(), value),
        ("k".to_owned(), "ä".to_owned(), value),
        ("k".to_owned(), n(100_000), value),
    ];
    let mut bad = Map::new();
    for (key, value, field) in cases {
        bad.insert(
            if key == "k" {
                format!("k{}", bad.len())
            } else {
                key.clone()
            },
            json!(value),
        );
        for (method, path, body) in [
            (
                "POST",
                "/clusters",
                json!({"kind": "Cluster", "name": "def", "spec": {}, "labels": {&key: &value}}),
            ),
            ("PATCH", &*path, json!({"labels": {&key: &value}})),
        ] {
            let answer = api.send(method, path, body).await;
            assert_eq!(
                (answer.status, answer.code()),
                (400, "VAL-000"),
                "{key}={value}"
            );
            assert_eq!(answer.fields(), [field], "{method} {key}={value}");
            assert_eq!(answer.body["errors"][0]["constraint"], "pattern");
            assert!(answer.bytes.len() < 2000, "an answer repeats a long text");
        }
    }
    let count = bad.len();
    let answer = api.patch(&path, json!({"labels": bad})).await;
    assert_eq!(answer.fields().len(), count, "{}", answer.body);
    assert_eq!(answer.detail(), "Request body validation failed");
    assert_eq!(api.get(&path).await.body["labels"], good);
}

#[tokio::test]
async fn parts_of_a_report_have_limits() {
    let api = TestApi::spawn().await;
    let path = format!("{}/statuses", api.cluster("abc").await);
    let body = report(&api);
    for (bytes, status) in [(255, 201), (256, 400), (100_000, 400)] {
        let answer = api
            .put(
                &path,
                with(
                    &body,
                    "/adapter",
                    json!("ä".repeat(bytes / 2) + &"a".repeat(bytes % 2)),
                ),
            )
            .await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    for (count, status) in [(100, 201), (101, 400)] {
        let condition = |n| json!({"type": format!("T{n}"), "status": "Unknown"});
        let mut conditions = body["conditions"].as_array().unwrap().clone();
        conditions.extend((conditions.len()..count).map(condition));
        let answer = api
            .put(&path, with(&body, "/conditions", Value::from(conditions)))
            .await;
        assert_eq!(answer.status, status, "{count}: {}", answer.body);
    }
}

#[tokio::test]
async fn texts_of_a_report_have_limits() {
    let api = TestApi::spawn().await;
    let path = format!("{}/statuses", api.cluster("abc").await);
    let body = report(&api);
    for (pointer, max) in [
        ("/conditions/0/reason", 1024),
        ("/conditions/0/message", 32_768),
        ("/metadata/duration", 1024),
        ("/metadata/job_name", 1024),
        ("/metadata/job_namespace", 1024),
    ] {
        for (bytes, status) in [(max, 201), (max + 1, 400)] {
            let answer = api
                .put(&path, with(&body, pointer, json!("x".repeat(bytes))))
                .await;
            assert_eq!(answer.status, status, "{pointer} {bytes}: {}", answer.body);
        }
    }
    for (bytes, status) in [(316, 201), (317, 400)] {
        let mut conditions = body["conditions"].as_array().unwrap().clone();
        conditions.push(json!({"type": "T".repeat(bytes), "status": "True"}));
        let answer = api
            .put(&path, with(&body, "/conditions", Value::from(conditions)))
            .await;
        assert_eq!(answer.status, status, "{bytes}: {}", answer.body);
    }
    for (count, status) in [(3, 201), (4, 400)] {
        let mut conditions = body["conditions"].as_array().unwrap().clone();
        let message = "m".repeat(32_768);
        let long = |n| json!({"type": format!("T{n}"), "status": "True", "message": message});
        conditions.extend((0..count).map(long));
        let answer = api
            .put(&path, with(&body, "/conditions", Value::from(conditions)))
            .await;
        assert_eq!(answer.status, status, "{count}: {}", answer.body);
    }
}

#[tokio::test]
async fn so_many_labels_may_a_resource_have_and_no_more() {
    let api = TestApi::spawn().await;
    for (count, status) in [(256, 201), (257, 400)] {
        let labels: serde_json::Map<_, _> =
            (0..count).map(|n| (format!("l{n}"), json!("v"))).collect();
        let body =
            json!({"kind": "Cluster", "name": format!("n{count}"), "spec": {}, "labels": labels});
        let answer = api.post("/clusters", body).await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
}

#[tokio::test]
async fn so_many_adapters_may_report_on_one_resource_and_no_more() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    for adapter in ["adapter-0", "adapter-1"] {
        assert_eq!(api.report(&cluster, adapter, 1, &[]).await.status, 201);
    }
    let others = "INSERT INTO adapter_reports (resource_id, adapter, observed_generation,
                      created_at, reported_at, conditions, data)
                  SELECT resource_id, 'other-' || n, observed_generation,
                      created_at, reported_at, conditions, data
                  FROM adapter_reports, generate_series(1, 253) n WHERE adapter = 'adapter-0'";
    let mut connection = api.database.connect().await;
    sqlx::query(others).execute(&mut connection).await.unwrap();
    assert_eq!(api.report(&cluster, "last", 1, &[]).await.status, 201);
    let answer = api.report(&cluster, "one-more", 1, &[]).await;
    assert_eq!(answer.problem(), (400, "VAL-000"), "{}", answer.body);
    api.clock.advance(1);
    assert_eq!(api.report(&cluster, "adapter-0", 1, &[]).await.status, 201);
}

#[tokio::test]
async fn the_reason_of_a_force_delete_is_counted_in_characters() {
    let api = TestApi::spawn().await;
    let path = format!("{}/force-delete", finalizing_cluster(&api, "abc").await);
    let answer = api.post(&path, json!({"reason": "ü".repeat(1025)})).await;
    assert_violation(
        &answer,
        "VAL-000",
        "reason",
        "reason must be at most 1024 characters",
        "1025",
    );
    let answer = api.post(&path, json!({"reason": "ü".repeat(1024)})).await;
    assert_eq!(answer.status, 204);
    let trail = api.get("/audit?action=force_delete").await;
    assert_eq!(trail.body["items"][0]["reason"], "ü".repeat(1024));
}

#[tokio::test]
async fn observations_are_neither_old_nor_from_the_future() {
    let api = TestApi::spawn().await;
    let path = format!("{}/statuses", api.cluster("abc").await);
    let ahead = Some("observed_time must not be more than 5m0s in the future");
    let old = Some("observed_time must not be more than 30m0s in the past");
    // The clock stands at 10:00:00.
    for (time, violation) in [
        ("2026-01-01T09:30:00Z", None),
        ("2026-01-01T09:29:59.999999Z", old),
        ("2026-01-01T10:05:00Z", None),
        ("2026-01-01T10:05:00.000001Z", ahead),
        ("2026-01-01T12:00:00+02:00", None),
        ("2026-01-01T10:00:00+02:00", old),
        ("0000-01-01T00:00:00Z", old),
        ("0001-01-02T00:00:00Z", old),
        ("9999-12-31T23:59:59Z", ahead),
        ("0001-01-01T00:00:00Z", None), // Go's way of saying none
    ] {
        let adapter = format!("at {time}");
        let body = with(&report(&api), "/adapter", json!(adapter));
        let answer = api
            .put(&path, with(&body, "/observed_time", json!(time)))
            .await;
        match violation {
            None => assert_eq!(answer.status, 201, "{time}: {}", answer.body),
            Some(message) => assert_violation(&answer, "VAL-000", "observed_time", message, time),
        }
    }
}

#[tokio::test]
async fn times_have_a_date_and_a_zone() {
    let api = TestApi::spawn().await;
    let path = format!("{}/statuses", api.cluster("abc").await);
    for text in [
        "",
        "now",
        "2026-01-01",
        "2026-01-01T10:00:00",
        "2026-01-01T10:00Z",
        "2026-13-01T10:00:00Z",
        "2026-02-30T10:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T10:00:00+24:60",
        "+10000-01-01T00:00:00Z",
        "-0001-01-01T00:00:00Z",
        "2026-01-01T10:00:00Z ",
        "1767261600",
    ] {
        for pointer in [
            "/observed_time",
            "/metadata/started_time",
            "/metadata/completed_time",
        ] {
            let answer = api
                .put(&path, with(&report(&api), pointer, json!(text)))
                .await;
            let found = (answer.status, answer.code());
            assert_eq!(
                found,
                (400, "VAL-006"),
                "{pointer} {text:?}: {}",
                answer.body
            );
            assert!(
                answer
                    .detail()
                    .starts_with("Invalid request format: parsing time '")
            );
        }
    }
}

#[tokio::test]
async fn times_of_a_job_are_stored_exactly() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    for (number, (sent, stored)) in [
        ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z")),
        ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
        (
            "9999-12-31T23:59:59.999999Z",
            Some("9999-12-31T23:59:59.999999Z"),
        ),
        (
            "2026-01-01T12:00:00.1234567+02:00",
            Some("2026-01-01T10:00:00.123456Z"),
        ),
        // Outside of what RFC 3339 can write, once in UTC.
        ("0000-01-01T00:00:00+23:59", None),
        ("9999-12-31T23:59:59-23:59", None),
    ]
    .into_iter()
    .enumerate()
    {
        let body = with(
            &report(&api),
            "/adapter",
            json!(format!("adapter-{number}")),
        );
        let path = format!("{cluster}/statuses");
        let answer = api
            .put(&path, with(&body, "/metadata/started_time", json!(sent)))
            .await;
        let Some(stored) = stored else {
            assert_eq!(
                (answer.status, answer.code()),
                (400, "VAL-006"),
                "{sent}: {}",
                answer.body
            );
            continue;
        };
        assert_eq!(answer.status, 201, "{sent}: {}", answer.body);
        assert_eq!(answer.body["metadata"]["started_time"], stored);
        let listed = api.get(&path).await;
        assert_eq!(listed.status, 200, "{sent}: {}", listed.body);
        let items = listed.body["items"].as_array().unwrap();
        assert_eq!(items.last().unwrap()["metadata"]["started_time"], stored);
    }
}

//! What is not let in: too slow, too many, too often, too early.

use std::sync::Arc;
use std::time::Duration;

use hyperfleet_server_kit::http::{Admission, Gate, Limits};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::faults::{hold_resources, hold_row};
use crate::support::{
    Answer, PATIENCE, Problem as _, RawAnswer, TestApi, WAITING, Walls, rest, tenancy, until,
};

async fn spawn(limits: &Limits) -> Arc<TestApi> {
    let admission = Admission::new(Gate::serving(), limits);
    Arc::new(TestApi::spawn_admitted(&admission).await)
}

/// The answer that comes until the server closes the connection.
async fn answer(mut stream: TcpStream) -> RawAnswer {
    RawAnswer::parse(&rest(&mut stream).await).expect("an answer")
}

/// Waits until so many requests wait for a row. Asked over a connection of its own: what a holder
/// sees of others stays as it was first seen in its transaction.
async fn until_waiting(api: &TestApi, count: i64) {
    until("requests wait for the row", async || {
        api.count(WAITING).await == count
    })
    .await;
}

fn post(headers: &str) -> String {
    format!("POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n")
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let limits = Limits {
        body_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let api = spawn(&limits).await;
    for (headers, body) in [
        ("Content-Length: 100", "{\"kind\":"),
        ("Content-Length: 100", ""),
        ("Transfer-Encoding: chunked", "5\r\n{\"kin\r\n"),
    ] {
        let request = format!("{}{body}", post(headers));
        let answer = answer(api.begin(&request).await).await;
        assert_eq!((answer.status, answer.code()), (408, "LMT-003"));
        assert_eq!(answer.body["title"], "Request Timeout");
        assert_eq!(answer.header("connection"), Some("close"), "{headers}");
    }
    assert_eq!(api.get("/clusters").await.body["total"], 0);
}

#[tokio::test]
async fn a_body_that_nobody_reads_does_not_keep_its_connection() {
    let admission = Admission::new(Gate::starting(), &Limits::default());
    let api = TestApi::spawn_admitted(&admission).await;
    for (method, path, status) in [
        ("GET", "/openapi", 200),
        ("DELETE", "/clusters/nobody", 503),
        ("POST", "/clusters", 503),
        ("POST", "/nothing", 404),
        ("PUT", "/clusters", 405),
    ] {
        let request = format!(
            "{method} /api/hyperfleet/v1{path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"
        );
        let answer = answer(api.begin(&request).await).await;
        assert_eq!(answer.status, status, "{method} {path}");
        assert_eq!(
            answer.header("connection"),
            Some("close"),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a_body_that_comes_on_may_take_longer() {
    let limits = Limits {
        body_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let api = spawn(&limits).await;
    let spec = json!({"text": "x".repeat(300_000)});
    let body = json!({"kind": "Cluster", "name": "slow", "spec": spec}).to_string();
    let head = post(&format!(
        "Content-Length: {}\r\nConnection: close",
        body.len()
    ));
    let mut stream = api.begin(&head).await;
    for chunk in body.as_bytes().chunks(64 * 1024) {
        stream.write_all(chunk).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(answer(stream).await.status, 201);
}

#[tokio::test]
async fn requests_above_the_concurrency_limit_get_retry_after() {
    let limits = Limits {
        in_flight_max: 2,
        ..Limits::default()
    };
    let api = spawn(&limits).await;
    let cluster = api.cluster("held").await;
    let mut holder = hold_resources(&api.database).await;
    let patches: Vec<_> = (0..2)
        .map(|number| {
            let (api, cluster) = (api.clone(), cluster.clone());
            let change = json!({"spec": {"number": number}});
            tokio::spawn(async move { api.patch(&cluster, change).await })
        })
        .collect();
    until_waiting(&api, 2).await;
    until("the limit is reached", async || {
        api.get("/clusters").await.status == 503
    })
    .await;
    let refused = api.get("/clusters").await;
    assert_eq!((refused.status, refused.code()), (503, "SVC-001"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    // What asks for nothing of the database is answered all the same.
    assert_eq!(api.get("/nothing").await.problem(), (404, "NTF-000"));
    assert_eq!(
        api.put("/clusters", json!({})).await.problem(),
        (405, "VAL-008")
    );
    assert_eq!(api.get("/openapi").await.status, 200);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
    for patch in patches {
        assert_eq!(patch.await.unwrap().status, 200);
    }
    assert_eq!(api.get(&cluster).await.status, 200);
}

#[tokio::test]
async fn clients_that_leave_while_they_wait_give_their_places_back() {
    let limits = Limits {
        in_flight_max: 1,
        ..Limits::default()
    };
    let api = spawn(&limits).await;
    let cluster = api.cluster("held").await;
    let mut holder = hold_row(&api.database, &cluster).await;
    let request = format!("DELETE /api/hyperfleet/v1{cluster} HTTP/1.1\r\nHost: x\r\n\r\n");
    let stream = api.begin(&request).await;
    until_waiting(&api, 1).await;
    assert_eq!(api.get("/clusters").await.status, 503);
    drop(stream);
    until("its place is free", async || {
        api.get("/clusters").await.status == 200
    })
    .await;
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_slow_body_takes_no_place() {
    let limits = Limits {
        in_flight_max: 1,
        body_time: PATIENCE,
        ..Limits::default()
    };
    let api = spawn(&limits).await;
    let body = json!({"kind": "Cluster", "name": "abc", "spec": {}}).to_string();
    let head = post(&format!(
        "Content-Length: {}\r\nConnection: close",
        body.len()
    ));
    let mut slow = Vec::new();
    for _ in 0..5 {
        slow.push(api.begin(&format!("{head}{}", &body[..10])).await);
    }
    for _ in 0..5 {
        assert_eq!(api.get("/clusters").await.status, 200);
    }
    let mut last = slow.pop().unwrap();
    last.write_all(&body.as_bytes()[10..]).await.unwrap();
    assert_eq!(answer(last).await.status, 201);
}

fn number(answer: &Answer, header: &str) -> u64 {
    let value = answer.header(header);
    let value = value.unwrap_or_else(|| panic!("{header} of {:?}", answer.headers));
    value.parse().unwrap()
}

#[tokio::test]
async fn clients_above_the_rate_get_retry_after() {
    let limits = Limits {
        rate_per_second: 1,
        rate_burst: 3,
        ..Limits::default()
    };
    let api = spawn(&limits).await;
    let first = api.get("/clusters").await;
    assert_eq!((first.status, number(&first, "ratelimit-limit")), (200, 3));
    assert_eq!(number(&first, "ratelimit-remaining"), 2);
    assert_eq!(first.header("ratelimit-policy"), Some("\"caller\";q=3;w=3"));
    assert_eq!(first.header("ratelimit"), Some("\"caller\";r=2;t=1"));
    let missing = api.get("/clusters/nobody").await;
    assert_eq!(
        (missing.status, number(&missing, "ratelimit-limit")),
        (404, 3)
    );
    let mut last = missing;
    until("it is refused", async || {
        last = api.get("/clusters/nobody").await;
        last.status != 404
    })
    .await;
    assert_eq!((last.status, last.code()), (429, "LMT-001"));
    assert_eq!(last.body["title"], "Rate Limit Exceeded");
    assert_eq!(last.detail(), "Too many requests, please try again later");
    assert_eq!(number(&last, "ratelimit-remaining"), 0);
    assert_eq!(
        number(&last, "retry-after"),
        number(&last, "ratelimit-reset")
    );
    // Not counted: what is public, and what leads nowhere.
    for _ in 0..5 {
        assert_eq!(api.get("/openapi").await.status, 200);
        assert_eq!(api.get("/nothing").await.status, 404);
    }
    let wait = Duration::from_secs(number(&last, "retry-after"));
    tokio::time::sleep(wait).await;
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn who_is_turned_away_may_not_go_on_for_ever_either() {
    let limits = Limits {
        rate_per_second: 1,
        rate_burst: 3,
        ..Limits::default()
    };
    let admission = Admission::new(Gate::serving(), &limits);
    let api = TestApi::spawn_admitted_for(&admission, tenancy(Walls::Up)).await;
    let mut last = api.get("/clusters").await;
    assert_eq!((last.status, last.code()), (403, "AUZ-001"));
    until("it is refused", async || {
        last = api.get("/clusters").await;
        last.status != 403
    })
    .await;
    assert_eq!((last.status, last.code()), (429, "LMT-001"));
}

#[tokio::test]
async fn while_it_starts_only_what_needs_no_database_is_answered() {
    let gate = Gate::starting();
    let admission = Admission::new(gate.clone(), &Limits::default());
    let api = TestApi::spawn_admitted(&admission).await;
    let early = api.get("/clusters").await;
    assert_eq!((early.status, early.code()), (503, "SVC-001"));
    assert_eq!(number(&early, "retry-after"), 5);
    assert_eq!(early.header("connection"), None);
    assert_eq!(api.get("/openapi").await.status, 200);
    assert_eq!(api.get("/nothing").await.problem(), (404, "NTF-000"));
    gate.open();
    let answer = api.get("/clusters").await;
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    gate.stop();
    for (path, status) in [
        ("/clusters", 200),
        ("/clusters/nobody", 404),
        ("/nothing", 404),
    ] {
        let answer = api.get(path).await;
        assert_eq!(
            (answer.status, answer.header("connection")),
            (status, Some("close"))
        );
    }
}

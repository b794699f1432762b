//! `?watch=true`: events, resuming, and the cost for others.

use hyperfleet_server_kit::http::{Admission, Gate, Limits};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{error, unit};
use hyperfleet_testkit::{PATIENCE, TestFleet, Then, send_raw_to, until};

/// One event, or what else stands between two empty lines.
#[derive(Debug, Default, Clone, PartialEq)]
struct Event {
    name: String,
    data: Value,
    id: Option<i64>,
    comment: Option<String>,
}

/// A client that watches.
struct Watcher {
    response: reqwest::Response,
    text: String,
}

impl Watcher {
    async fn open(fleet: &TestFleet, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut request = fleet.client.get(format!("{}{path}", fleet.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["server"], "fleetd/1.2.3");
        let mut watcher = Self {
            response,
            text: String::new(),
        };
        assert_eq!(watcher.block().await.as_deref(), Some("retry: 1000"));
        watcher
    }

    /// What stands up to the next empty line; none at the end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk.expect("something in time").unwrap()?;
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }

    async fn event(&mut self) -> Event {
        let block = self.block().await.expect("an event");
        let mut event = Event::default();
        for line in block.lines() {
            match line.split_once(": ").unwrap() {
                ("event", name) => event.name = name.to_owned(),
                ("data", data) => event.data = serde_json::from_str(data).unwrap(),
                ("id", id) => event.id = Some(id.parse().unwrap()),
                ("", comment) => event.comment = Some(comment.to_owned()),
                other => panic!("{other:?}"),
            }
        }
        event
    }

    /// The next events up to one with an id: `put a.service` and the like, and that id.
    async fn events(&mut self) -> (Vec<String>, i64) {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            let name = event.data["name"].as_str().unwrap_or("all");
            events.push(format!("{} {name}", event.name));
            if let Some(id) = event.id {
                return (events, id);
            }
        }
    }
}

#[tokio::test]
async fn the_list_comes_first_and_then_changes() {
    let fleet = TestFleet::spawn().await;
    fleet.put("/units/a.service", &unit("1")).await;
    fleet.put("/units/b.service", &unit("1")).await;
    let path = "/fleet/v1/units?watch=true&alt=json";
    // A list may be of a moment before the last writes, which follow as changes then.
    until("the list has both units", async || {
        let mut watcher = Watcher::open(&fleet, path, &[]).await;
        watcher.events().await.0.len() == 3
    })
    .await;
    let mut watcher = Watcher::open(&fleet, path, &[]).await;
    let first = watcher.event().await;
    assert_eq!(first.data, fleet.get("/units/a.service").await.body);
    assert_eq!((first.name.as_str(), first.id), ("put", None));
    let (events, listed) = watcher.events().await;
    assert_eq!(events, ["put b.service", "listed all"]);

    fleet.put("/units/c.service", &unit("1")).await;
    let (events, created) = watcher.events().await;
    assert_eq!(events, ["put c.service"]);
    fleet
        .put("/units/a.service", &json!({"desiredState": "launched"}))
        .await;
    let changed = watcher.event().await;
    assert_eq!(
        (&changed.data["name"], &changed.data["desiredState"]),
        (&json!("a.service"), &json!("launched"))
    );
    fleet.delete("/units/b.service").await;
    let gone = watcher.event().await;
    assert_eq!(
        (gone.name.as_str(), &gone.data),
        ("delete", &json!({"name": "b.service"}))
    );
    let ids = [listed, created, changed.id.unwrap(), gone.id.unwrap()];
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[tokio::test]
async fn a_client_that_reconnects_receives_what_it_missed() {
    let fleet = TestFleet::spawn().await;
    fleet.put("/units/a.service", &unit("1")).await;
    let mut watcher = Watcher::open(&fleet, "/units?watch=true", &[]).await;
    let (_, seen) = watcher.events().await;
    drop(watcher);
    fleet.put("/units/b.service", &unit("1")).await;
    fleet.delete("/units/a.service").await;
    let meanwhile = ["delete a.service", "put b.service"];
    // The browser repeats the address that it began with, and says what it saw last.
    let path = format!("/units?watch=1&revision={seen}");
    let mut watcher = Watcher::open(&fleet, &path, &[]).await;
    let (mut events, mut last) = watcher.events().await;
    // The server may learn of the second change after it has told of the first.
    if events.len() < meanwhile.len() {
        let (more, id) = watcher.events().await;
        events.extend(more);
        last = id;
    }
    events.sort();
    assert_eq!(events, meanwhile);
    let last = last.to_string();
    let mut watcher = Watcher::open(&fleet, &path, &[("last-event-id", &last)]).await;
    fleet.put("/units/c.service", &unit("1")).await;
    assert_eq!(watcher.events().await.0, ["put c.service"]);
}

#[tokio::test]
async fn states_are_watched_as_they_are_filtered() {
    let fleet = TestFleet::spawn().await;
    let mut m1 = fleet.machine("m1").await;
    let mut m2 = fleet.machine("m2").await;
    fleet.report(&mut m1, &["a.service", "b.service"]).await;
    let path = "/fleet/v1/state?watch=true&machineID=m1&unitName=a.service";
    let mut watcher = Watcher::open(&fleet, path, &[]).await;
    let state = watcher.event().await;
    assert_eq!(state.data, fleet.get("/state/a.service").await.body);
    assert_eq!(watcher.events().await.0, ["listed all"]);
    // Nothing of this is asked for.
    fleet.report(&mut m2, &["a.service"]).await;
    fleet.report(&mut m1, &["a.service"]).await;
    fleet.report(&mut m1, &[]).await;
    let gone = watcher.event().await;
    let expected = json!({"machineID": "m1", "name": "a.service"});
    assert_eq!((gone.name.as_str(), gone.data), ("delete", expected));
}

#[tokio::test]
async fn what_cannot_be_gone_on_with_is_refused() {
    let fleet = TestFleet::spawn().await;
    for (query, parameter) in [
        ("watch=yes", "watch"),
        ("watch=true&revision=x", "revision"),
        ("watch=true&revision=-1", "revision"),
        ("watch=true&revision=99999999999999999999", "revision"),
    ] {
        for path in ["/units", "/state"] {
            let refused = fleet.get(&format!("{path}?{query}")).await;
            let message = format!("invalid value of {parameter} query parameter");
            assert_eq!(refused.body, error(400, &message), "{query}");
        }
    }
    let bad = error(400, "invalid value of Last-Event-ID header");
    for headers in [
        &[("last-event-id", "x")][..],
        &[("last-event-id", "1"), ("last-event-id", "2")],
        &[("last-event-id", ""), ("last-event-id", "2")],
        &[("last-event-id", "\u{e9}")],
    ] {
        let refused = fleet.send("GET", "/units?watch=true", headers, "").await;
        assert_eq!(refused.body, bad, "{headers:?}");
    }
    let headers = [("last-event-id", "1")];
    let path = "/units?watch=true&revision=abc";
    let refused = fleet.send("GET", path, &headers, "").await;
    let message = "invalid value of revision query parameter";
    assert_eq!(refused.body, error(400, message));
    let refused = fleet.get("/units?watch=true&nextPageToken=zzz").await;
    let message = "watch and nextPageToken cannot be used together";
    assert_eq!(refused.body, error(400, message));
    let refused = fleet
        .get("/units?watch=true&revision=9000000000000000000")
        .await;
    assert_eq!(refused.status, 400, "it has not come yet: {refused:?}");
    // Without a watch nobody looks at a revision.
    assert_eq!(fleet.get("/units?watch=false&revision=x").await.status, 200);
}

#[tokio::test]
async fn resources_without_a_watch_refuse_it() {
    let fleet = TestFleet::spawn().await;
    fleet.put("/units/a.service", &unit("1")).await;
    let mut machine = fleet.machine("m1").await;
    fleet.report(&mut machine, &["a.service"]).await;
    for path in [
        "/machines",
        "/units/a.service",
        "/units/a.service/explain",
        "/state/a.service",
    ] {
        let refused = fleet.get(&format!("{path}?watch=true")).await;
        assert_eq!(
            refused.body,
            error(400, "this resource cannot be watched"),
            "{path}"
        );
        assert_eq!(fleet.get(&format!("{path}?watch=false")).await.status, 200);
    }
}

/// Who speaks HTTP/1.0 knows no chunks.
#[tokio::test]
async fn a_client_without_chunked_encoding_cannot_watch() {
    let fleet = TestFleet::spawn().await;
    let head = b"GET /units?watch=true HTTP/1.0\r\n\r\n";
    let refused = send_raw_to(fleet.address(), head, Then::Wait)
        .await
        .unwrap();
    assert_eq!(refused.body, error(400, "watching needs HTTP/1.1"));
    assert_eq!(refused.header("transfer-encoding"), None);
}

/// Connections of this server may lie idle for two seconds.
#[tokio::test]
async fn a_silent_watch_is_kept_alive_by_comments() {
    let fleet = TestFleet::spawn().await;
    let mut watcher = Watcher::open(&fleet, "/units?watch=true", &[]).await;
    assert_eq!(watcher.events().await.0, ["listed all"]);
    let beat = watcher.event().await;
    assert_eq!(beat.comment.as_deref(), Some("alive"));
    fleet.put("/units/a.service", &unit("1")).await;
    assert_eq!(watcher.events().await.0, ["put a.service"]);
}

#[tokio::test]
async fn a_watch_ends_with_the_service() {
    let fleet = TestFleet::spawn().await;
    let mut watchers = Vec::new();
    for path in ["/units?watch=true", "/state?watch=true"] {
        let mut watcher = Watcher::open(&fleet, path, &[]).await;
        watcher.events().await;
        watchers.push(watcher);
    }
    fleet.gate.stop();
    for mut watcher in watchers {
        assert_eq!(watcher.block().await, None);
    }
}

#[tokio::test]
async fn watching_clients_do_not_keep_others_out() {
    let limits = Limits {
        in_flight_max: 1,
        ..Limits::default()
    };
    let admission = Admission::new(Gate::serving(), &limits);
    let fleet = TestFleet::spawn_with(|api| api.admission = admission).await;
    let mut watcher = Watcher::open(&fleet, "/units?watch=true", &[]).await;
    watcher.events().await;
    assert_eq!(fleet.put("/units/a.service", &unit("1")).await.status, 201);
    assert_eq!(watcher.events().await.0, ["put a.service"]);
}

#[tokio::test]
async fn so_many_may_watch_and_a_place_is_free_when_one_has_left() {
    let fleet = TestFleet::spawn().await;
    let mut watchers = Vec::new();
    for _ in 0..256 {
        watchers.push(Watcher::open(&fleet, "/units?watch=true", &[]).await);
    }
    let refused = fleet.get("/units?watch=true").await;
    assert_eq!(refused.body, error(503, "too many clients are watching"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(fleet.get("/units").await.status, 200);
    watchers.pop();
    until("there is a place again", async || {
        let request = fleet.client.get(format!("{}/units?watch=true", fleet.base));
        request.send().await.unwrap().status() == 200
    })
    .await;
}

/// A client that watches units, and reads nothing.
async fn silent(fleet: &TestFleet) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let address = fleet.address().parse().unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = b"GET /units?watch=true HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(head).await.unwrap();
    stream
}

/// Nearly as large as a unit may be.
fn large(mark: u32) -> Value {
    let line = "x".repeat(2000);
    let option = |n: u32| json!({"section": "S", "name": format!("A{n}"), "value": line});
    let mut unit = json!({"options": (0..28).map(option).collect::<Vec<_>>()});
    unit["options"][0]["value"] = json!(mark.to_string());
    unit
}

/// Each of them took as much memory as the whole list: most were ended without a word, and so was everybody's list.
#[tokio::test]
async fn clients_that_do_not_read_a_large_list_keep_no_others_out() {
    let limits = Limits {
        buffered_bytes_max: 4 * 1024 * 1024,
        ..Limits::default()
    };
    let admission = Admission::new(Gate::serving(), &limits);
    let fleet = TestFleet::spawn_with(|api| api.admission = admission).await;
    for number in 0..30 {
        let path = format!("/units/large{number}.service");
        assert_eq!(fleet.put(&path, &large(number)).await.status, 201);
    }
    // As many as may watch with so little memory, less one.
    let mut watchers = Vec::new();
    for _ in 0..7 {
        watchers.push(silent(&fleet).await);
    }
    for watcher in &watchers {
        timeout(PATIENCE, watcher.readable())
            .await
            .unwrap()
            .unwrap();
    }
    let mut reading = Watcher::open(&fleet, "/units?watch=true", &[]).await;
    assert_eq!(reading.events().await.0.len(), 31);
    // A client above the limit is refused before anything else.
    let refused = fleet.get("/units?watch=true").await;
    assert_eq!(refused.body, error(503, "too many clients are watching"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(fleet.get("/units").await.status, 200);
}

/// Their connections counted as requests in progress at the shutdown.
#[tokio::test]
async fn a_stop_does_not_wait_for_unread_watches() {
    // Nothing else ends connections within the time of this test.
    let fleet = TestFleet::spawn_with_idle_time(PATIENCE * 10).await;
    for number in 0..30 {
        let path = format!("/units/large{number}.service");
        assert_eq!(fleet.put(&path, &large(number)).await.status, 201);
    }
    let before = fleet.open_connections();
    let watcher = silent(&fleet).await;
    timeout(PATIENCE, watcher.readable())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(fleet.open_connections(), before + 1);
    fleet.gate.stop();
    until("it is ended", async || fleet.open_connections() == before).await;
    drop(watcher);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off() {
    let fleet = TestFleet::spawn().await;
    let stream = silent(&fleet).await;
    for round in 0..20 {
        assert_eq!(
            fleet
                .put("/units/large.service", &large(round))
                .await
                .status,
            201
        );
    }
    // The one over which changes were made ends, too, once it has lain idle.
    until("it is cut off", async || fleet.open_connections() == 0).await;
    drop(stream);
}

//! How it ends.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::program::{Fleetd, Place};
use hyperfleet_testkit::{RawAnswer, until};

const BODY: &str = r#"{"options":[{"section":"Service","name":"ExecStart","value":"/bin/true"}]}"#;

/// A request of which the body is still to come.
async fn request_in_progress(fleetd: &Fleetd) -> UnixStream {
    let mut stream = UnixStream::connect(&fleetd.socket).await.unwrap();
    let head = format!(
        "PUT /fleet/v1/units/a.service HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{}",
        BODY.len(),
        &BODY[..10]
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    until("the request is in progress", async || {
        let in_flight = fleetd
            .api()
            .metric("hyperfleet_api_requests_in_flight")
            .await;
        // This one, and the one that asks.
        in_flight.unwrap() > 1.5
    })
    .await;
    stream
}

const PATIENT: [(&str, &str); 2] = [("read_timeout", "1h"), ("shutdown_timeout", "2m")];

#[tokio::test]
async fn a_request_in_progress_is_answered_and_no_other_is_accepted() {
    let place = Place::new().await;
    let mut fleetd = place.start_as("m1", &PATIENT);
    fleetd.until_serving().await;
    let mut stream = request_in_progress(&fleetd).await;
    fleetd.signal(Signal::TERM);
    until("no connection is accepted", async || {
        UnixStream::connect(&fleetd.socket).await.is_err()
    })
    .await;
    stream.write_all(&BODY.as_bytes()[10..]).await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    assert_eq!(RawAnswer::parse(&said).unwrap().status, 201);
    assert!(fleetd.ended().await.success(), "{}", fleetd.output());
    assert!(!fleetd.socket.exists());
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let place = Place::new().await;
    let mut fleetd = place.start_as("m1", &PATIENT);
    fleetd.until_serving().await;
    let _stream = request_in_progress(&fleetd).await;
    fleetd.signal(Signal::INT);
    fleetd.until_output("completing requests in progress").await;
    fleetd.signal(Signal::TERM);
    assert_eq!(fleetd.ended().await.code(), Some(1), "{}", fleetd.output());
    assert!(
        fleetd.output().contains("stopped immediately"),
        "{}",
        fleetd.output()
    );
}

/// It was waited for until `shutdown_timeout`, and then called a request that was cut.
#[tokio::test]
async fn an_unread_watch_does_not_fail_a_stop() {
    let place = Place::new().await;
    let mut fleetd = place.start_as("m1", &PATIENT);
    fleetd.until_serving().await;
    let line = "x".repeat(2000);
    let lines: Vec<_> = (0..28)
        .map(|number| format!("S A{number}={line}"))
        .collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    for number in 0..20 {
        let unit = format!("large{number}.service");
        fleetd.api().put(&unit, &lines, "inactive").await;
    }
    let mut watcher = UnixStream::connect(&fleetd.socket).await.unwrap();
    let head = b"GET /fleet/v1/units?watch=true HTTP/1.1\r\nHost: x\r\n\r\n";
    watcher.write_all(head).await.unwrap();
    watcher.readable().await.unwrap();
    let since = Instant::now();
    fleetd.stop().await;
    // Not the two minutes that a request in progress would have had.
    assert!(since.elapsed() < Duration::from_mins(1));
    drop(watcher);
}

#[tokio::test]
async fn a_watchdog_of_the_service_manager_gets_signs_of_life() {
    let place = Place::new().await;
    let path = place.file("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    let mut command = place.command("m1", &[]);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000");
    let mut fleetd = Fleetd::start(command, place.socket("m1"));
    let mut signs = 0;
    while signs < 5 {
        let mut buffer = [0; 256];
        let count = manager.recv(&mut buffer).unwrap();
        signs += usize::from(&buffer[..count] == b"WATCHDOG=1\n");
    }
    fleetd.stop().await;
}

#[tokio::test]
async fn the_service_manager_is_notified() {
    let place = Place::new().await;
    let path = place.file("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    let notified = || {
        let mut buffer = [0; 256];
        let count = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    };
    let mut command = place.command("m1", &[]);
    command.env("NOTIFY_SOCKET", &path);
    let mut fleetd = Fleetd::start(command, place.socket("m1"));
    assert_eq!(notified(), "READY=1\n");
    // It answers by then, although etcd is not there yet.
    assert!(fleetd.get("/fleet/v1/units").await.is_some());
    fleetd.signal(Signal::HUP);
    assert!(notified().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(notified(), "READY=1\n");
    fleetd.signal(Signal::TERM);
    assert_eq!(notified(), "STOPPING=1\n");
    assert!(fleetd.ended().await.success(), "{}", fleetd.output());
}

//! Listeners.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use rustix::process::Signal;

use super::program::Place;
use hyperfleet_testkit::http_client;

#[tokio::test]
async fn a_socket_has_its_mode_and_is_removed_at_a_clean_end() {
    let place = Place::new().await;
    let socket = place.file("deep/down/fleet.sock");
    let listen = format!("unix:{}", socket.display());
    let settings = [("listen", listen.as_str()), ("listen_socket_mode", "600")];
    let mut fleetd = place.start_as("m1", &settings);
    fleetd.socket = socket.clone();
    fleetd.until_serving().await;
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fleetd.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn only_the_socket_of_a_dead_process_is_replaced() {
    let place = Place::new().await;
    let mut first = place.start();
    first.until_serving().await;
    first.signal(Signal::KILL);
    first.ended().await;
    assert!(first.socket.exists());

    let mut second = place.start();
    second.until_serving().await;
    let mut third = place.start();
    assert_eq!(third.ended().await.code(), Some(1));
    let said = third.output();
    assert!(said.contains("another process listens there"), "{said}");
    // A frozen process listens, too.
    second.signal(Signal::STOP);
    let mut fourth = place.start();
    assert_eq!(fourth.ended().await.code(), Some(1));
    second.signal(Signal::CONT);
    second.until_serving().await;
    second.stop().await;
}

#[tokio::test]
async fn the_socket_of_another_program_is_not_changed() {
    let place = Place::new().await;
    let _other = UnixListener::bind(place.socket("m1")).unwrap();
    let mut fleetd = place.start();
    assert_eq!(fleetd.ended().await.code(), Some(1));
    assert!(place.socket("m1").exists());
}

#[tokio::test]
async fn it_answers_on_every_listener_alike() {
    let place = Place::new().await;
    let other = place.file("other.sock");
    let listen = format!(
        "unix:{}, unix:{}, tcp:127.0.0.1:0",
        place.socket("m1").display(),
        other.display()
    );
    let mut fleetd = place.start_as("m1", &[("listen", &listen)]);
    fleetd.until_serving().await;
    fleetd.launch("a.service").await;
    fleetd.socket = other;
    for path in ["/fleet/v1/units", "/v1-alpha/units", "/units"] {
        let (status, units) = fleetd.get(path).await.unwrap();
        assert_eq!(
            (status, &units["units"][0]["name"]),
            (200, &"a.service".into())
        );
    }
    let said = fleetd.output();
    let (_, rest) = said.split_once("tcp:127.0.0.1:").unwrap();
    // The second time it is the real port.
    let (_, rest) = rest.split_once("tcp:127.0.0.1:").unwrap_or(("", rest));
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let url = format!("http://127.0.0.1:{port}/fleet/v1/units");
    let answer = http_client().get(url).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    fleetd.stop().await;
}

#[tokio::test]
async fn a_used_port_is_reported_and_leaves_no_socket_behind() {
    let place = Place::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let listen = format!("unix:{}, tcp:{address}", place.socket("m1").display());
    let mut fleetd = place.start_as("m1", &[("listen", &listen)]);
    assert_eq!(fleetd.ended().await.code(), Some(1));
    let said = fleetd.output();
    assert!(
        said.contains(&format!("cannot listen on tcp:{address}")),
        "{said}"
    );
    assert!(!place.socket("m1").exists());
}

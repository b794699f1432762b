//! Sockets passed by the service manager, as systemd does.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use super::local::is_there;
use super::program::{Fleetd, Place};
use hyperfleet_testkit::{http_client, until};

/// fleetd with standard input and output as sockets 3 and 4, arranged by a shell.
fn handed(place: &Place, sockets: [OwnedFd; 2], settings: &[(&str, &str)]) -> Fleetd {
    let fleetd = place.command("m1", settings);
    let mut shell = Command::new("sh");
    let script = "LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" 3<&0 4<&5 5<&- </dev/null";
    // The test needs standard output, so the second socket comes from 5.
    let script = format!("exec 5<&1 1>&2; {script}");
    shell.arg("-c").arg(script).arg(fleetd.get_program());
    shell.env_clear();
    for (name, value) in fleetd.get_envs() {
        shell.env(name, value.unwrap());
    }
    let [first, second] = sockets;
    shell.stdin(Stdio::from(first));
    Fleetd::start_with_output(shell, Stdio::from(second), place.socket("m1"))
}

#[tokio::test]
async fn passed_sockets_replace_those_of_the_settings() {
    let place = Place::new().await;
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let path = place.file("activated.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let mut fleetd = handed(&place, [tcp.into(), unix.into()], &[]);
    fleetd.socket = path.clone();
    fleetd.until_serving().await;
    let url = format!("http://{address}/fleet/v1/machines");
    let answer = http_client().get(url).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    assert!(!place.socket("m1").exists());
    fleetd.stop().await;
    // It belongs to its creator.
    assert!(path.exists());
}

#[tokio::test]
async fn a_socket_that_does_not_listen_is_refused() {
    let place = Place::new().await;
    let unix = || OwnedFd::from(UnixListener::bind(place.file("u.sock")).unwrap());
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap().into();
    let mut fleetd = handed(&place, [unix(), udp], &[]);
    assert_eq!(fleetd.ended().await.code(), Some(2), "{}", fleetd.output());
    let said = fleetd.output();
    assert!(
        said.contains("socket 1 passed by the service manager"),
        "{said}"
    );
    assert!(
        said.contains("neither a TCP socket nor a unix stream socket"),
        "{said}"
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut fleetd = handed(&place, [one.into(), tcp.into()], &[]);
    assert_eq!(fleetd.ended().await.code(), Some(2), "{}", fleetd.output());
    assert!(
        fleetd.output().contains("Accept=yes"),
        "{}",
        fleetd.output()
    );
}

/// Nothing would accept the clients of these sockets.
#[tokio::test]
async fn without_the_api_sockets_that_are_handed_over_are_refused() {
    let place = Place::new().await;
    let unix = |name| OwnedFd::from(UnixListener::bind(place.file(name)).unwrap());
    let sockets = [unix("a.sock"), unix("b.sock")];
    let mut fleetd = handed(&place, sockets, &[("disable_api", "true")]);
    assert_eq!(fleetd.ended().await.code(), Some(2), "{}", fleetd.output());
    let said = fleetd.output();
    assert!(
        said.contains("run systemctl disable --now fleetd.socket"),
        "{said}"
    );
}

#[tokio::test]
async fn a_passed_socket_open_to_other_machines_is_refused() {
    let place = Place::new().await;
    let open = || TcpListener::bind("0.0.0.0:0").unwrap();
    let own = || TcpListener::bind("127.0.0.1:0").unwrap();
    let mut fleetd = handed(&place, [own().into(), open().into()], &[]);
    assert_eq!(fleetd.ended().await.code(), Some(2), "{}", fleetd.output());
    assert!(
        fleetd.output().contains("callers are not authenticated"),
        "{}",
        fleetd.output()
    );
    // The settings' own listeners are ignored then.
    let settings = [("listen", "tcp:0.0.0.0:0")];
    let mut fleetd = handed(&place, [own().into(), own().into()], &settings);
    fleetd.until_output("serving").await;
    fleetd.stop().await;
    let anonymous = [("listen_anonymous", "true")];
    let mut fleetd = handed(&place, [own().into(), open().into()], &anonymous);
    fleetd.until_output("serving").await;
    assert!(
        fleetd.output().contains("WARN listen_anonymous"),
        "{}",
        fleetd.output()
    );
    fleetd.stop().await;
}

#[tokio::test]
async fn sockets_that_are_for_another_process_are_not_taken() {
    let place = Place::new().await;
    let settings = [];
    let mut command = place.command("m1", &settings);
    command.env("LISTEN_PID", "1").env("LISTEN_FDS", "2");
    let mut fleetd = Fleetd::start(command, place.socket("m1"));
    fleetd.until_serving().await;
    fleetd.stop().await;
}

#[tokio::test]
async fn the_first_client_starts_it_by_systemds_own_tool() {
    if !is_there("systemd-socket-activate") {
        println!("skipped: there is no systemd-socket-activate");
        return;
    }
    let place = Place::new().await;
    let path = place.file("activated.sock");
    let fleetd = place.command("m1", &[]);
    let mut tool = Command::new("systemd-socket-activate");
    tool.env_clear().arg("-l").arg(&path);
    for (name, value) in fleetd.get_envs() {
        let assignment = format!("{}={}", name.display(), value.unwrap().display());
        tool.arg("-E").arg(assignment);
    }
    tool.arg(fleetd.get_program());
    let mut fleetd = Fleetd::start(tool, path.clone());
    until("the tool listens", async || path.exists()).await;
    fleetd.until_serving().await;
    fleetd.stop().await;
}

//! Status and journal of units, also of other machines.

use std::time::Duration;

use hyperfleet_testkit::{Authority, until};
use reqwest::{Method, Response};

use super::agent::Machine;
use super::fleet_socket::SLEEP;
use super::local::free_port;
use super::program::{Fleetd, Place};

/// A certificate for `127.0.0.1`, by which fleetd instances authenticate.
struct Files {
    cert: String,
    key: String,
    ca: String,
}

impl Files {
    /// Written to the home of the machine's systemd, where every fleetd of a test may read them.
    fn of(machine: &Machine, authority: &Authority, name: &str) -> Self {
        let issued = authority.issue("127.0.0.1");
        let ca = std::fs::read_to_string(authority.file()).unwrap();
        let write = |what: &str, text: &str| {
            let path = format!("{name}-{what}.pem");
            machine.systemd.write(&path, text);
            machine.systemd.home().join(path).display().to_string()
        };
        Self {
            cert: write("cert", &issued.certificate),
            key: write("key", &issued.key),
            ca: write("ca", &ca),
        }
    }

    fn settings(&self) -> [(&str, &str); 3] {
        [
            ("listen_cert_file", &self.cert),
            ("listen_key_file", &self.key),
            ("listen_client_ca_file", &self.ca),
        ]
    }
}

async fn ask(fleetd: &Fleetd, path: &str) -> Response {
    let path = format!("/fleet/v1/units/{path}");
    fleetd.api().request(Method::GET, &path).await
}

async fn refused(fleetd: &Fleetd, path: &str) -> (u16, String) {
    let response = ask(fleetd, path).await;
    let status = response.status().as_u16();
    let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (
        status,
        body["error"]["message"].as_str().unwrap().to_owned(),
    )
}

/// Status, exit status of `systemctl` and text.
async fn status_of(fleetd: &Fleetd, unit: &str) -> (u16, String, String) {
    let response = ask(fleetd, &format!("{unit}/status")).await;
    let exit = response.headers().get("fleet-exit-status");
    let exit = exit.map(|exit| exit.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    (
        status,
        exit.unwrap_or_default(),
        response.text().await.unwrap(),
    )
}

/// Another machine of the same cluster, which runs no units.
fn other_machine(machine: &Machine, settings: &[(&str, &str)]) -> (Place, Fleetd) {
    let mut place = Place::on(machine.etcd.clone());
    place.prefix.clone_from(&machine.prefix);
    let fleetd = place.start_as("m2", settings);
    (place, fleetd)
}

#[tokio::test]
async fn any_fleetd_shows_the_status_of_a_unit_on_any_machine() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let authority = Authority::new();
    let (files, port) = (Files::of(&machine, &authority, "m1"), free_port());
    let address = format!("127.0.0.1:{port}");
    let listen = format!("{},tcp:{address}", machine.listen());
    let mut settings = files.settings().to_vec();
    settings.extend([("listen", listen.as_str()), ("advertise_address", &address)]);
    let own = machine.start_with(&settings).await;
    own.api().put("a.service", &SLEEP, "launched").await;
    own.api().put("b.service", &SLEEP, "loaded").await;
    own.api().put("c.service", &SLEEP, "inactive").await;
    own.api().until_state("a.service", "active").await;
    own.api().until_state("b.service", "inactive").await;

    let (status, exit, text) = status_of(&own, "a.service").await;
    assert_eq!((status, exit.as_str()), (200, "0"), "{text}");
    assert!(text.contains("Active: active (running)"), "{text}");
    let (status, exit, text) = status_of(&own, "b.service").await;
    assert_eq!((status, exit.as_str()), (200, "3"), "{text}");
    assert!(text.contains("Loaded: loaded"), "{text}");
    let journal = ask(&own, "a.service/journal?lines=5").await;
    assert_eq!(journal.status().as_u16(), 200);
    let message = "unit c.service is on no machine".to_owned();
    assert_eq!(refused(&own, "c.service/status").await, (409, message));
    let message = "unit does not exist".to_owned();
    assert_eq!(refused(&own, "cron.service/status").await, (404, message));
    let message = "unit a.service is not on machine m9".to_owned();
    let asked = "a.service/status?machineID=m9";
    assert_eq!(refused(&own, asked).await, (409, message));
    for query in [
        "lines=x",
        "lines=10001",
        "output=short",
        "follow=true",
        "watch=perhaps",
        "watch=true&after=a%20--all",
    ] {
        let (status, _) = refused(&own, &format!("a.service/journal?{query}")).await;
        assert_eq!(status, 400, "{query}");
    }

    // Through another fleetd.
    let other_files = Files::of(&machine, &authority, "m2");
    let (_place, other) = other_machine(&machine, &other_files.settings());
    other.until_serving().await;
    let (status, exit, text) = status_of(&other, "a.service").await;
    assert_eq!((status, exit.as_str()), (200, "0"), "{text}");
    assert!(text.contains("Active: active (running)"), "{text}");
    let (_, exit, _) = status_of(&other, "b.service").await;
    assert_eq!(exit, "3");
    let journal = ask(&other, "a.service/journal").await;
    assert_eq!(journal.status().as_u16(), 200);
    // A followed journal has no end until its fleetd stops.
    let mut followed = ask(&other, "a.service/journal?watch=true").await;
    assert_eq!(followed.status().as_u16(), 200);
    let mut other = other;
    other.stop().await;
    let rest = tokio::time::timeout(Duration::from_mins(1), async {
        while let Ok(Some(_)) = followed.chunk().await {}
    });
    assert!(rest.await.is_ok(), "it goes on");

    // A client without a valid certificate.
    let (_place, stranger) = other_machine(&machine, &[]);
    stranger.until_serving().await;
    let (status, message) = refused(&stranger, "a.service/status").await;
    assert_eq!(status, 501);
    assert!(message.contains("listen_client_ca_file"), "{message}");
    let strange = Files::of(&machine, &Authority::new(), "m3");
    let (_place, stranger) = other_machine(&machine, &strange.settings());
    stranger.until_serving().await;
    let (status, message) = refused(&stranger, "a.service/status").await;
    assert_eq!(status, 502, "{message}");
    let begin = format!("cannot ask machine m1 at {address}: ");
    assert!(message.starts_with(&begin), "{message}");
}

#[tokio::test]
async fn a_machine_without_an_address_is_named_with_the_setting() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let own = machine.start().await;
    own.api().put("a.service", &SLEEP, "launched").await;
    own.api().until_state("a.service", "active").await;
    let (_place, other) = other_machine(&machine, &[]);
    other.until_serving().await;
    let refused = refused(&other, "a.service/journal").await;
    let message = "machine m1 does not say where other machines reach its fleetd: \
                   set advertise_address there";
    assert_eq!(refused, (501, message.to_owned()));
}

#[tokio::test]
async fn an_address_is_advertised_only_with_certificates() {
    let place = Place::new().await;
    let mut fleetd = place.start_as("m1", &[("advertise_address", "127.0.0.1:8001")]);
    assert_eq!(fleetd.ended().await.code(), Some(2), "{}", fleetd.output());
    let said = fleetd.output();
    assert!(
        said.contains("advertise_address") && said.contains("listen_client_ca_file"),
        "{said}"
    );
}

#[tokio::test]
async fn a_restart_gives_a_unit_another_process() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    fleetd.api().put("a.service", &SLEEP, "launched").await;
    let global = [SLEEP[0], "X-Fleet Global=true"];
    fleetd.api().put("all.service", &global, "launched").await;
    for unit in ["a.service", "all.service"] {
        fleetd.api().until_state(unit, "active").await;
        let before = machine.main_pid(unit);
        let path = format!("/fleet/v1/units/{unit}/restart");
        let answer = fleetd.api().request(Method::POST, &path).await;
        assert_eq!(answer.status().as_u16(), 202);
        until(&format!("{unit} has another process"), async || {
            let now = machine.main_pid(unit);
            now != before && now != "0" && machine.is(unit, "active")
        })
        .await;
    }
}

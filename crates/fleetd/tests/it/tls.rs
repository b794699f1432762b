//! TLS of its own listeners.

use reqwest::{Certificate, Identity};

use super::program::{Fleetd, Place};
use hyperfleet_testkit::{Authority, PATIENCE, until};

/// Files of a listener that wants to see certificates.
struct Files {
    cert: String,
    key: String,
    ca: String,
}

impl Files {
    fn of(place: &Place, server: &Authority, clients: &Authority) -> Self {
        let issued = server.issue("127.0.0.1");
        Self {
            cert: place.write("cert.pem", &issued.certificate),
            key: place.write("key.pem", &issued.key),
            ca: place.write("clients.pem", pem(clients)),
        }
    }

    fn settings(&self) -> [(&str, &str); 4] {
        [
            ("listen", "tcp:127.0.0.1:0"),
            ("listen_cert_file", &self.cert),
            ("listen_key_file", &self.key),
            ("listen_client_ca_file", &self.ca),
        ]
    }
}

fn pem(authority: &Authority) -> Vec<u8> {
    std::fs::read(authority.file()).unwrap()
}

/// Where it listens, as soon as it says so.
async fn address(fleetd: &mut Fleetd) -> String {
    fleetd.until_output("serving address=tcp:").await;
    let said = fleetd.output();
    let (_, rest) = said.split_once("serving address=tcp:").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

/// The status of a request by a new connection; none if there is no connection.
async fn status(
    address: &str,
    server: &Authority,
    shown: Option<(&Authority, &str)>,
) -> Option<u16> {
    hyperfleet_server_kit::crypto::install();
    let trusted = Certificate::from_pem(&pem(server)).unwrap();
    let mut client = reqwest::Client::builder()
        .tls_certs_only([trusted])
        .timeout(PATIENCE);
    if let Some((authority, name)) = shown {
        let issued = authority.issue(name);
        let pem = [issued.certificate, issued.key].concat();
        client = client.identity(Identity::from_pem(pem.as_bytes()).unwrap());
    }
    let client = client.build().unwrap();
    let answer = client.get(format!("https://{address}/fleet/v1/discovery"));
    Some(answer.send().await.ok()?.status().as_u16())
}

#[tokio::test]
async fn only_clients_with_a_valid_certificate_are_accepted() {
    let place = Place::new().await;
    let (server, clients, stranger) = (Authority::new(), Authority::new(), Authority::new());
    let files = Files::of(&place, &server, &clients);
    let mut fleetd = place.start_as("m1", &files.settings());
    let address = address(&mut fleetd).await;
    until("a good certificate gets in", async || {
        status(&address, &server, Some((&clients, "me"))).await == Some(200)
    })
    .await;
    assert_eq!(status(&address, &server, None).await, None);
    assert_eq!(
        status(&address, &server, Some((&stranger, "me"))).await,
        None
    );
    // One of the server's own authority is none of the clients'.
    assert_eq!(status(&address, &server, Some((&server, "me"))).await, None);
    // Without TLS there is no answer either.
    let plain = reqwest::get(format!("http://{address}/fleet/v1/discovery")).await;
    assert!(plain.is_err(), "{plain:?}");

    // The authorities are read again: those that are gone count no more, for new connections.
    place.write("clients.pem", pem(&stranger));
    until("another authority counts", async || {
        status(&address, &server, Some((&stranger, "me"))).await == Some(200)
    })
    .await;
    assert_eq!(
        status(&address, &server, Some((&clients, "me"))).await,
        None
    );
    // What is no certificate changes nothing.
    place.write("clients.pem", "nonsense");
    fleetd.until_output("certificate not replaced").await;
    assert_eq!(
        status(&address, &server, Some((&stranger, "me"))).await,
        Some(200)
    );
    let other = Authority::new();
    Files::of(&place, &other, &clients);
    until("another certificate is used", async || {
        status(&address, &other, Some((&clients, "me"))).await == Some(200)
    })
    .await;
    fleetd.stop().await;
}

#[tokio::test]
async fn tls_without_client_certificates_must_be_requested() {
    let place = Place::new().await;
    let (server, clients) = (Authority::new(), Authority::new());
    let files = Files::of(&place, &server, &clients);
    let [_, cert, key, _] = files.settings();
    let open = [("listen", "tcp:0.0.0.0:0"), cert, key];
    let mut refused = place.start_as("m1", &open);
    assert_eq!(
        refused.ended().await.code(),
        Some(2),
        "{}",
        refused.output()
    );
    let own = [("listen", "tcp:127.0.0.1:0"), cert, key];
    let mut fleetd = place.start_as("m1", &own);
    let address = address(&mut fleetd).await;
    until("everybody gets in", async || {
        status(&address, &server, None).await == Some(200)
    })
    .await;
    fleetd.stop().await;
}

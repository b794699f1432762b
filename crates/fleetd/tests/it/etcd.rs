//! Connections to etcd: TLS, users, and outages.

use rustix::process::Signal;

use super::program::{Fleetd, Place};
use hyperfleet_testkit::{Authority, TestEtcd, until};
use hyperfleet_testkit::{etcd_identity as identity, prepare_etcd_users, secure_etcd};

/// A server without client certificates.
async fn server_alone(authority: &Authority, place: &tempfile::TempDir) -> TestEtcd {
    let issued = authority.issue("127.0.0.1");
    let file = |name: &str, content: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let arguments = [
        format!("--cert-file={}", file("server.pem", &issued.certificate)),
        format!("--key-file={}", file("server.key", &issued.key)),
    ];
    TestEtcd::start_with("https", &arguments).await
}

#[tokio::test]
async fn an_authority_is_all_that_tls_needs_and_it_is_not_passed_over() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let files = tempfile::tempdir().unwrap();
    let etcd = server_alone(&authority, &files).await;
    let place = Place::on(etcd.url());
    let good = authority.file().display().to_string();
    let strange = stranger.file().display().to_string();
    let mut fleetd = place.start_as("m1", &[("etcd_cafile", &good)]);
    fleetd.until_serving().await;
    fleetd.stop().await;
    // The older fleetd ignored it without a client certificate.
    let mut fleetd = place.start_as("m1", &[("etcd_cafile", &strange)]);
    fleetd
        .until_output("cannot connect: invalid peer certificate: ")
        .await;
    assert_away(&fleetd).await;
    fleetd.stop().await;
    let mut fleetd = place.start();
    assert_eq!(fleetd.ended().await.code(), Some(2), "{}", fleetd.output());
    let said = fleetd.output();
    assert!(
        said.contains("etcd_cafile: https to etcd requires"),
        "{said}"
    );
}

/// The response of every path except metrics while etcd is away.
const AWAY: &str = "fleet server unable to communicate with etcd";

async fn assert_away(fleetd: &Fleetd) {
    until("it answers", async || {
        fleetd.get("/fleet/v1/units").await.is_some()
    })
    .await;
    for path in [
        "/fleet/v1/units",
        "/fleet/v1/discovery",
        "/fleet/v1/nonsense",
    ] {
        let (status, body) = fleetd.get(path).await.unwrap();
        assert_eq!(
            (status, &body["error"]["message"]),
            (503, &AWAY.into()),
            "{path}"
        );
    }
    let (status, _) = fleetd.get("/metrics").await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test]
async fn fleetd_starts_without_etcd_and_serves_once_it_is_there() {
    let mut etcd = TestEtcd::start().await;
    etcd.kill();
    let place = Place::on(etcd.url());
    let mut fleetd = place.start();
    assert_away(&fleetd).await;
    fleetd.until_output("waiting for etcd").await;
    let said = fleetd.output();
    let fault = format!("{}: cannot connect: Connection refused", etcd.url());
    assert!(said.contains(&fault), "{said}");
    // Once, however long it takes.
    assert_eq!(said.matches("waiting for etcd").count(), 1, "{said}");
    etcd.resume().await;
    fleetd.until_serving().await;
    fleetd.until_output("etcd connected").await;
    fleetd.launch("a.service").await;

    etcd.kill();
    until("it notices", async || {
        matches!(fleetd.get("/fleet/v1/units").await, Some((503, _)))
    })
    .await;
    assert_away(&fleetd).await;
    etcd.resume().await;
    fleetd.until_serving().await;
    let (_, units) = fleetd.get("/fleet/v1/units").await.unwrap();
    assert_eq!(units["units"][0]["name"], "a.service");
    fleetd.stop().await;
}

#[tokio::test]
async fn a_frozen_etcd_is_logged_and_prevents_no_shutdown() {
    let etcd = TestEtcd::start().await;
    let place = Place::on(etcd.url());
    let mut leader = place.start();
    leader.until_serving().await;
    leader.until_output("leadership").await;
    etcd.signal(Signal::STOP);
    let short = [("etcd_request_timeout", "500ms")];
    let mut second = place.start_as("m2", &short);
    second
        .until_output("connections can be made, but calls fail")
        .await;
    assert_away(&second).await;
    second.stop().await;
    // It cannot resign: its lease expires.
    leader.stop().await;
    etcd.signal(Signal::CONT);
}

#[tokio::test]
async fn both_sides_show_certificates_and_a_user_logs_in() {
    let authority = Authority::new();
    let (etcd, _files) = secure_etcd(&authority).await;
    let identity = identity(authority.issue("client"));
    prepare_etcd_users(&etcd, &authority, &identity).await;
    let mut place = Place::on(etcd.url());
    // The prefix that the user may access.
    place.prefix = "/fleet/v3/".to_owned();
    let stranger = Authority::new();
    let ca = authority.file().display().to_string();
    let strange_ca = stranger.file().display().to_string();
    let cert = place.write("cert.pem", &identity.certificate_pem);
    let key = place.write("key.pem", &identity.key_pem);
    let password = place.write("password", "right\n");
    let wrong = place.write("wrong", "hush");
    let good = [
        ("etcd_cafile", ca.as_str()),
        ("etcd_certfile", cert.as_str()),
        ("etcd_keyfile", key.as_str()),
        ("etcd_username", "fleet"),
        ("etcd_password_file", password.as_str()),
    ];
    let mut fleetd = place.start_as("m1", &good);
    fleetd.until_serving().await;
    fleetd.launch("a.service").await;
    fleetd.stop().await;

    // Each kind of refusal is logged plainly, and stops nothing.
    let with = |key: &str, value| {
        good.map(|(name, given)| {
            if name == key {
                (name, value)
            } else {
                (name, given)
            }
        })
    };
    let mut refused = place.start_as("m1", &with("etcd_password_file", wrong.as_str()));
    refused.until_output("fault=\"it refuses us: ").await;
    assert!(
        refused.output().contains("authentication failed"),
        "{}",
        refused.output()
    );
    assert!(!refused.output().contains("hush"), "{}", refused.output());
    assert_away(&refused).await;
    refused.stop().await;

    let mut distrusted = place.start_as("m1", &with("etcd_cafile", strange_ca.as_str()));
    distrusted
        .until_output("cannot connect: invalid peer certificate: ")
        .await;
    assert_away(&distrusted).await;
    distrusted.stop().await;

    // With only an authority the server is verified, too; this one requires a client certificate as well.
    let mut unknown = place.start_as("m1", &[("etcd_cafile", ca.as_str())]);
    unknown.until_output("it closes the connection: ").await;
    assert!(
        unknown.output().to_lowercase().contains("certificate"),
        "{}",
        unknown.output()
    );
    assert_away(&unknown).await;
    unknown.stop().await;
}

//! TLS, client certificates and users of a real etcd.

use std::fs;

use hyperfleet_fleet::etcd::{Credentials, EtcdKeys, EtcdTls, Identity, Settings};
use hyperfleet_fleet::keys;
use hyperfleet_fleet::registry::{Error, Prefix, Registry};
use hyperfleet_fleet_model::unit::DesiredState;

use super::body;
use hyperfleet_testkit::{
    Authority, TestEtcd, etcd_identity as identity, etcd_settings, prepare_etcd_users, secure_etcd,
};

fn settings(server: &TestEtcd, authority: &Authority, identity: Option<Identity>) -> Settings {
    Settings {
        tls: Some(EtcdTls {
            authorities_pem: fs::read(authority.file()).unwrap(),
            identity,
            server_name: None,
        }),
        request_timeout: std::time::Duration::from_secs(3),
        ..etcd_settings(&server.url())
    }
}

async fn reads(settings: Settings) -> Result<(), Error> {
    let store = EtcdKeys::connect(settings).await?;
    let registry = Registry::new(store, Prefix::default());
    registry.snapshot().await.map(|_| ())
}

#[tokio::test]
async fn both_sides_show_a_certificate_or_nothing_is_said() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (server, _files) = secure_etcd(&authority).await;
    let ours = || Some(identity(authority.issue("fleet")));
    reads(settings(&server, &authority, ours())).await.unwrap();
    // An untrusted server, with a client certificate and without.
    assert!(reads(settings(&server, &stranger, ours())).await.is_err());
    assert!(reads(settings(&server, &stranger, None)).await.is_err());
    // A client without a certificate, and with one of another authority.
    assert!(reads(settings(&server, &authority, None)).await.is_err());
    let strange = Some(identity(stranger.issue("fleet")));
    assert!(reads(settings(&server, &authority, strange)).await.is_err());
    // A server with another name.
    let mut elsewhere = settings(&server, &authority, ours());
    elsewhere.tls.as_mut().unwrap().server_name = Some("etcd.example".into());
    assert!(reads(elsewhere).await.is_err());
    // An invalid certificate.
    let mut broken = settings(&server, &authority, ours());
    broken.tls.as_mut().unwrap().authorities_pem = b"no certificate".into();
    assert!(reads(broken).await.is_err());
    // Without TLS.
    let plain = server.url().replace("https", "http");
    assert!(
        reads(Settings {
            tls: None,
            endpoints: vec![plain],
            ..settings(&server, &authority, None)
        })
        .await
        .is_err()
    );
}

#[tokio::test]
async fn users_do_what_their_role_lets_them() {
    let authority = Authority::new();
    let (mut server, _files) = secure_etcd(&authority).await;
    // etcd uses the name in a client's certificate as the user: this user does not exist.
    let identity = identity(authority.issue("nobody"));
    prepare_etcd_users(&server, &authority, &identity).await;
    let with = |password: &str| Settings {
        credentials: Some(Credentials {
            user: "fleet".into(),
            password: password.into(),
        }),
        ..settings(&server, &authority, Some(identity.clone()))
    };
    let store = EtcdKeys::connect(with("right")).await.unwrap();
    let registry = Registry::new(store.clone(), Prefix::default());
    registry
        .create_unit("a.service", &body("1"), DesiredState::Loaded, None)
        .await
        .unwrap();
    // Its role is limited to the prefix.
    let elsewhere = Registry::new(store, Prefix::new("/elsewhere").unwrap());
    let refused = elsewhere.snapshot().await;
    assert!(
        matches!(refused, Err(Error::Store(keys::Error::Refused { .. }))),
        "{refused:?}"
    );
    let wrong = EtcdKeys::connect(with("wrong")).await;
    assert!(
        matches!(wrong, Err(keys::Error::Refused { .. })),
        "{wrong:?}"
    );
    let nobody = Settings {
        credentials: None,
        ..with("")
    };
    let refused = reads(nobody).await;
    assert!(
        matches!(refused, Err(Error::Store(keys::Error::Refused { .. }))),
        "{refused:?}"
    );
    // Tokens are lost with the server that issued them; the next call logs in again.
    server.kill();
    server.resume().await;
    hyperfleet_testkit::until("the registry is there again", async || {
        registry
            .find_unit("a.service")
            .await
            .is_ok_and(|unit| unit.is_some())
    })
    .await;
}

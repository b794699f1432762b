use std::path::PathBuf;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use super::*;

const NAMES: SettingNames = SettingNames {
    endpoints: "servers",
    username: "user",
    password: "password",
    ca_file: "ca",
    cert_file: "cert",
    key_file: "key",
};

fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn secret(text: &str) -> Secret {
    text.to_owned().into()
}

fn faults(etcd: &Etcd, password: &str) -> String {
    settings(etcd, &secret(password), &NAMES)
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_set_is_what_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["etcd".to_owned()]).unwrap();
    let etcd = Etcd {
        endpoints: vec!["https://etcd:2379".to_owned()],
        username: "fleet".to_owned(),
        password_file: write(&folder, "password", "hush\r\n"),
        ca_file: write(&folder, "ca", &cert.pem()),
        cert_file: write(&folder, "cert", &cert.pem()),
        key_file: write(&folder, "key", &signing_key.serialize_pem()),
        server_name: "other".to_owned(),
        ..Etcd::default()
    };
    let made = settings(&etcd, &Secret::default(), &NAMES).unwrap();
    let credentials = made.credentials.unwrap();
    assert_eq!(
        (credentials.user.as_str(), credentials.password.as_str()),
        ("fleet", "hush")
    );
    let tls = made.tls.unwrap();
    assert_eq!(tls.authorities_pem, cert.pem().into_bytes());
    assert_eq!(tls.server_name.as_deref(), Some("other"));
    assert!(tls.identity.is_some());

    // Only an authority is needed for TLS.
    let etcd = Etcd {
        cert_file: PathBuf::new(),
        key_file: PathBuf::new(),
        ..etcd
    };
    let tls = settings(&etcd, &Secret::default(), &NAMES).unwrap().tls;
    assert!(tls.unwrap().identity.is_none());
    let plain = settings(&Etcd::default(), &Secret::default(), &NAMES).unwrap();
    assert!(plain.tls.is_none() && plain.credentials.is_none());
}

#[test]
fn every_invalid_setting_is_reported_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let pair = || generate_simple_self_signed(["etcd".to_owned()]).unwrap();
    let etcd = Etcd {
        endpoints: vec!["etcd:2379".to_owned(), "https://u:hush@etcd".to_owned()],
        username: "fleet".to_owned(),
        password_file: folder.path().join("none"),
        ca_file: write(&folder, "ca", "nonsense"),
        cert_file: write(&folder, "cert", &pair().cert.pem()),
        key_file: write(&folder, "key", &pair().signing_key.serialize_pem()),
        ..Etcd::default()
    };
    let said = faults(&etcd, "");
    for fault in [
        "servers: \"etcd:2379\" is no server of etcd",
        "servers: a URL of etcd must not contain a user or password",
        "password: cannot read",
        "ca: cannot use",
        "cert: cannot use",
    ] {
        assert!(said.contains(fault), "no {fault:?} in: {said}");
    }
    assert!(!said.contains("hush"), "{said}");
}

#[test]
fn what_belongs_together_is_set_together() {
    let folder = tempfile::tempdir().unwrap();
    let pair = generate_simple_self_signed(["etcd".to_owned()]).unwrap();
    let with = |url: &str| Etcd {
        endpoints: vec![url.to_owned()],
        ..Etcd::default()
    };
    let ca_file = write(&folder, "ca", &pair.cert.pem());
    let http = Etcd {
        ca_file: ca_file.clone(),
        ..with("http://etcd:2379")
    };
    assert!(
        faults(&http, "").starts_with("ca: "),
        "{}",
        faults(&http, "")
    );
    let https = with("https://etcd:2379");
    assert!(faults(&https, "").starts_with("ca: https to etcd requires"));
    let mixed = Etcd {
        endpoints: vec!["https://a".to_owned(), "http://b".to_owned()],
        ca_file: ca_file.clone(),
        ..Etcd::default()
    };
    assert!(faults(&mixed, "").starts_with("servers: "));
    let half = Etcd {
        cert_file: ca_file.clone(),
        ca_file,
        ..https
    };
    assert_eq!(
        faults(&half, ""),
        "cert and key go together: set both, or none"
    );
    assert_eq!(
        faults(&with("http://a"), "hush"),
        "password is given, but user is not"
    );
    let nobody = Etcd {
        username: "fleet".to_owned(),
        ..with("http://a")
    };
    assert_eq!(faults(&nobody, ""), "user is given, but password is not");
}

#[tokio::test]
async fn an_unusable_server_is_reported_with_the_reason() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let said = diagnosis::diagnose(&Settings::plain(vec![format!("http://{address}")])).await;
    assert!(said.is_empty(), "{said:?}");
    // Bound, without a listener: no other test can take the port.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = bound.local_addr().unwrap();
    let said = diagnosis::diagnose(&Settings::plain(vec![format!("http://{address}")])).await;
    assert!(said[0].contains("cannot connect: "), "{said:?}");
}

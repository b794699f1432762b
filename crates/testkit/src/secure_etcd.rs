//! A private etcd with TLS, client certificates and users.

use std::fs;

use etcd_client::{Client, ConnectOptions, Permission, TlsOptions};
use hyperfleet_fleet::etcd::Identity;

use crate::{Authority, Issued, TestEtcd};

/// A client certificate as the settings of a key store.
pub fn etcd_identity(issued: Issued) -> Identity {
    Identity {
        certificate_pem: issued.certificate.into(),
        key_pem: issued.key.into(),
    }
}

/// A server that requires client certificates.
pub async fn secure_etcd(authority: &Authority) -> (TestEtcd, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let issued = authority.issue("127.0.0.1");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let arguments = [
        "--client-cert-auth".to_owned(),
        format!("--trusted-ca-file={}", authority.file().display()),
        format!("--cert-file={}", file("server.pem", &issued.certificate)),
        format!("--key-file={}", file("server.key", &issued.key)),
    ];
    (TestEtcd::start_with("https", &arguments).await, folder)
}

/// Creates the users `root` and `fleet`. The password of `fleet` is `right`, and its role is limited to the
/// default prefix.
pub async fn prepare_etcd_users(server: &TestEtcd, authority: &Authority, identity: &Identity) {
    let tls = TlsOptions::new()
        .ca_certificate(etcd_client::Certificate::from_pem(
            fs::read(authority.file()).unwrap(),
        ))
        .identity(etcd_client::Identity::from_pem(
            &identity.certificate_pem,
            &identity.key_pem,
        ));
    let options = ConnectOptions::new().with_tls(tls);
    let mut client = Client::connect([server.url()], Some(options))
        .await
        .unwrap();
    client.role_add("root").await.unwrap();
    client.user_add("root", "root", None).await.unwrap();
    client.user_grant_role("root", "root").await.unwrap();
    client.role_add("fleet").await.unwrap();
    let all = Permission::read_write("/fleet/v3/").with_prefix();
    client.role_grant_permission("fleet", all).await.unwrap();
    client.user_add("fleet", "right", None).await.unwrap();
    client.user_grant_role("fleet", "fleet").await.unwrap();
    client.auth_enable().await.unwrap();
}

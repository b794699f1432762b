//! Keys in files, which change while the service runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use hyperfleet_auth::IssuerConfig;

use super::signer::Signer;
use super::world::{ISSUER, Publisher, Says, claims, config, key_set, read, service, slow, with};
use crate::support::{TestApi, until};

/// Waits until a key counts; each time by a token that was never seen before.
async fn wait_until_used(api: &TestApi, signer: &Signer) {
    let mut number = 0;
    until("the new key is taken", async || {
        number += 1;
        read(api, &signer.sign(&with("number", number)))
            .await
            .status
            == 200
    })
    .await;
}

fn of(path: &Path) -> IssuerConfig {
    IssuerConfig {
        jwk_cert_file: path.to_owned(),
        ..config(ISSUER)
    }
}

#[tokio::test]
async fn a_swapped_link_is_noticed_as_kubernetes_makes_it() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (name, signer) in [("..1", &old), ("..2", &new)] {
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join("jwks.json"), key_set(&[signer])).unwrap();
    }
    symlink("..1", root.join("..data")).unwrap();
    symlink("..data/jwks.json", root.join("jwks.json")).unwrap();
    let api = service(&[of(&root.join("jwks.json"))], slow()).await;
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 200);
    assert_eq!(read(&api, &new.sign(&claims())).await.status, 401);
    symlink("..2", root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    wait_until_used(&api, &new).await;
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 401);
}

#[tokio::test]
async fn a_file_that_breaks_keeps_its_last_good_keys() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jwks.json");
    fs::write(&path, key_set(&[&old])).unwrap();
    let api = service(&[of(&path)], slow()).await;
    for (number, text) in ["", "{\"keys\": []}", "{\"keys\": ["].iter().enumerate() {
        fs::write(&path, text).unwrap();
        tokio::time::sleep(5 * slow().file_period).await;
        let token = old.sign(&with("number", number));
        assert_eq!(read(&api, &token).await.status, 200, "{text}");
    }
    fs::remove_file(&path).unwrap();
    tokio::time::sleep(5 * slow().file_period).await;
    assert_eq!(read(&api, &old.sign(&with("number", 9))).await.status, 200);
    fs::write(&path, key_set(&[&new])).unwrap();
    wait_until_used(&api, &new).await;
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 401);
}

#[tokio::test]
async fn keys_of_a_file_and_of_an_address_count_together() {
    let (in_file, published, later) = (Signer::p256("f"), Signer::p256("a"), Signer::p256("l"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jwks.json");
    fs::write(&path, key_set(&[&in_file])).unwrap();
    let issuer = Publisher::start(Says::Keys(key_set(&[&published])));
    let both = IssuerConfig {
        jwk_cert_file: path.clone(),
        ..issuer.config()
    };
    let api = service(&[both], slow()).await;
    for signer in [&in_file, &published] {
        assert_eq!(read(&api, &signer.sign(&claims())).await.status, 200);
    }
    fs::write(&path, key_set(&[&later])).unwrap();
    wait_until_used(&api, &later).await;
    assert_eq!(read(&api, &in_file.sign(&claims())).await.status, 401);
    assert_eq!(read(&api, &published.sign(&claims())).await.status, 200);
}

#[tokio::test]
async fn keys_of_a_file_count_while_the_address_is_away() {
    let in_file = Signer::p256("f");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jwks.json");
    fs::write(&path, key_set(&[&in_file])).unwrap();
    let issuer = Publisher::start(Says::Status(500, String::new()));
    let both = IssuerConfig {
        jwk_cert_file: path,
        ..issuer.config()
    };
    let api = service(&[both], slow()).await;
    assert_eq!(read(&api, &in_file.sign(&claims())).await.status, 200);
}

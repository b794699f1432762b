//! Keys of a Kubernetes API server, which has its own media type for them and wants a token.

use hyperfleet_auth::IssuerConfig;

use super::rotation::eager;
use super::signer::Signer;
use super::world::{Publisher, Says, claims, key_set, read, service};

#[tokio::test]
async fn keys_are_fetched_with_the_token_that_the_file_has_now() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\n").unwrap();
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let issuer = Publisher::start(Says::KeysTo("first", key_set(&[&old])));
    let config = IssuerConfig {
        jwk_cert_token_file: file.clone(),
        ..issuer.config()
    };
    let api = service(&[config], eager()).await;
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 200);

    // The issuer has replaced its key, and accepts the earlier token no longer: the earlier key stays.
    issuer.say(Says::KeysTo("second", key_set(&[&new])));
    let token = new.sign(&claims());
    assert_eq!(read(&api, &token).await.status, 401);
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 200);
    for useless in [None, Some(""), Some("two words")] {
        match useless {
            None => std::fs::remove_file(&file).unwrap(),
            Some(text) => std::fs::write(&file, text).unwrap(),
        }
        let asked = issuer.asked();
        assert_eq!(read(&api, &token).await.status, 401);
        assert_eq!(issuer.asked(), asked, "{useless:?}");
    }
    std::fs::write(&file, "second").unwrap();
    assert_eq!(read(&api, &token).await.status, 200);
}

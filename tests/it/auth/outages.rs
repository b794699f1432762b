//! Issuers that are away, or answer rubbish.

use std::time::{Duration, Instant};

use hyperfleet_auth::{KEY_SET_BYTES_MAX, KEYS_MAX, Pace};
use serde_json::{Value, json};

use super::rotation::eager;
use super::signer::Signer;
use super::world::{Publisher, Says, claims, key_set, read, service, slow, with};
use crate::support::until;

/// Causes a fetch of the keys, by a token of an unknown key.
async fn provoke(api: &crate::support::TestApi, issuer: &Publisher) {
    let asked = issuer.asked();
    let unknown = Signer::p256("unknown").sign(&claims());
    assert_eq!(read(api, &unknown).await.status, 401);
    assert_eq!(issuer.asked(), asked + 1);
}

fn padded(keys: &str, bytes: u64) -> String {
    let length = usize::try_from(bytes).unwrap();
    format!("{keys}{}", " ".repeat(length - keys.len()))
}

#[tokio::test]
async fn the_last_good_keys_stay_whatever_the_issuer_says() {
    let (good, evil) = (Signer::p256("good"), Signer::p256("evil"));
    let issuer = Publisher::start(Says::Keys(key_set(&[&good])));
    let api = service(&[issuer.config()], eager()).await;
    let other = Publisher::start(Says::Keys(key_set(&[&evil])));
    let keys = key_set(&[&evil]);
    let rubbish = [
        Says::Status(500, keys.clone()),
        Says::Status(404, keys.clone()),
        Says::Status(203, keys.clone()),
        Says::Redirect(other.url.clone()),
        Says::Keys(String::new()),
        Says::Keys("<html>maintenance</html>".to_owned()),
        Says::Keys(keys[..keys.len() - 2].to_owned()),
        Says::Keys("[]".to_owned()),
        Says::Keys(json!({"keys": []}).to_string()),
        Says::Keys(json!({"keys": [{"kty": "oct", "kid": "evil", "k": "AQAB"}]}).to_string()),
        Says::Keys(json!({"keys": vec![evil.jwk(); KEYS_MAX + 1]}).to_string()),
        Says::Keys(padded(&keys, KEY_SET_BYTES_MAX + 1)),
    ];
    for (number, says) in rubbish.into_iter().enumerate() {
        issuer.say(says);
        provoke(&api, &issuer).await;
        // A token that was never seen before.
        let token = good.sign(&with("number", number));
        assert_eq!(read(&api, &token).await.status, 200, "{number}");
        let token = evil.sign(&with("number", number));
        assert_eq!(read(&api, &token).await.status, 401, "{number}");
    }
    assert_eq!(other.asked(), 0);
    // As much as there may be is taken.
    issuer.say(Says::Keys(padded(&keys, KEY_SET_BYTES_MAX)));
    assert_eq!(read(&api, &evil.sign(&claims())).await.status, 200);
    issuer.stop().await;
    assert_eq!(read(&api, &good.sign(&claims())).await.status, 401);
    assert_eq!(
        read(&api, &evil.sign(&with("number", 99))).await.status,
        200
    );
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_keeps_nobody_waiting() {
    for says in [Says::Nothing, Says::Drops] {
        let good = Signer::p256("good");
        let issuer = Publisher::start(Says::Keys(key_set(&[&good])));
        let pace = Pace {
            fetch: Duration::from_mins(10),
            wait: Duration::from_millis(200),
            ..eager()
        };
        let api = service(&[issuer.config()], pace).await;
        issuer.say(says);
        let since = Instant::now();
        let unknown = Signer::p256("unknown").sign(&claims());
        assert_eq!(read(&api, &unknown).await.status, 401);
        assert_eq!(read(&api, &good.sign(&claims())).await.status, 200);
        assert!(
            since.elapsed() < Duration::from_mins(1),
            "{:?}",
            since.elapsed()
        );
    }
}

#[tokio::test]
async fn a_silent_issuer_times_out_and_is_retried() {
    for says in [Says::Nothing, Says::Drops] {
        let (good, new) = (Signer::p256("good"), Signer::p256("new"));
        let issuer = Publisher::start(Says::Keys(key_set(&[&good])));
        let pace = Pace {
            fetch: Duration::from_millis(500),
            ..eager()
        };
        let api = service(&[issuer.config()], pace).await;
        issuer.say(says);
        let token = new.sign(&claims());
        assert_eq!(read(&api, &token).await.status, 401);
        issuer.publish(&[&good, &new]);
        until("the new key is taken", async || {
            read(&api, &token).await.status == 200
        })
        .await;
    }
}

#[tokio::test]
async fn an_unreachable_issuer_is_asked_again_for_a_token() {
    let good = Signer::p256("good");
    let issuer = Publisher::start(Says::Status(503, String::new()));
    let api = service(&[issuer.config()], eager()).await;
    let token = good.sign(&claims());
    let refused = read(&api, &token).await;
    assert_eq!(refused.problem(), (401, "AUT-002"));
    assert_eq!(refused.body["errors"], Value::Null);
    issuer.publish(&[&good]);
    assert_eq!(read(&api, &token).await.status, 200);
}

#[tokio::test]
async fn an_issuer_that_is_away_is_asked_again_although_nobody_comes() {
    let good = Signer::p256("good");
    let issuer = Publisher::start(Says::Status(503, String::new()));
    let pace = Pace {
        retry_min: Duration::from_millis(50),
        retry_max: Duration::from_millis(100),
        ..slow()
    };
    let api = service(&[issuer.config()], pace).await;
    until("it is asked again", async || issuer.asked() >= 3).await;
    issuer.publish(&[&good]);
    let asked = issuer.asked();
    until("it is asked once more", async || issuer.asked() > asked).await;
    // Tokens do not have it asked before its time: it is asked anyway.
    until("its tokens are taken", async || {
        read(&api, &good.sign(&claims())).await.status == 200
    })
    .await;
}

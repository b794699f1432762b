//! Keys that an issuer changes while the service runs.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hyperfleet_auth::Pace;

use super::signer::Signer;
use super::world::{ISSUER, Publisher, Says, claims, key_set, read, service, slow, with};
use crate::support::until;

/// Lets every request whose key is not known have the keys fetched.
pub(super) fn eager() -> Pace {
    Pace {
        cooldown: Duration::ZERO,
        ..slow()
    }
}

#[tokio::test]
async fn a_new_key_is_found_and_a_removed_one_is_forgotten() {
    let (old, new) = (Signer::p256("old"), Signer::ed25519("new"));
    let issuer = Publisher::start(Says::Keys(key_set(&[&old])));
    let api = service(&[issuer.config()], eager()).await;
    let token = old.sign(&claims());
    assert_eq!(read(&api, &token).await.status, 200);
    assert_eq!(issuer.asked(), 1);
    issuer.publish(&[&old, &new]);
    assert_eq!(read(&api, &new.sign(&claims())).await.status, 200);
    assert_eq!(issuer.asked(), 2);
    issuer.publish(&[&new]);
    // Known, so that no request asks for a fetch; then one does.
    assert_eq!(read(&api, &token).await.status, 200);
    assert_eq!(
        read(&api, &Signer::p256("x").sign(&claims())).await.status,
        401
    );
    let refused = read(&api, &token).await;
    assert_eq!(refused.problem(), (401, "AUT-002"));
}

#[tokio::test]
async fn a_token_without_kid_is_tried_with_stored_then_new_keys() {
    let (old, other, new) = (Signer::p256("a"), Signer::p256("b"), Signer::p256("c"));
    let issuer = Publisher::start(Says::Keys(key_set(&[&old, &other])));
    let api = service(&[issuer.config()], eager()).await;
    let nameless =
        |signer: &Signer| signer.sign_text("ES256", r#"{"alg":"ES256"}"#, &claims().to_string());
    assert_eq!(read(&api, &nameless(&other)).await.status, 200);
    assert_eq!(issuer.asked(), 1);
    issuer.publish(&[&new]);
    assert_eq!(read(&api, &nameless(&new)).await.status, 200);
    assert_eq!(read(&api, &nameless(&old)).await.status, 401);
}

#[tokio::test]
async fn a_new_key_under_an_old_name_is_taken_when_it_is_time() {
    let (old, new) = (Signer::p256("same"), Signer::p256("same"));
    let issuer = Publisher::start(Says::Keys(key_set(&[&old])));
    let pace = Pace {
        period: Duration::from_millis(50),
        ..slow()
    };
    let api = service(&[issuer.config()], pace).await;
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 200);
    issuer.publish(&[&new]);
    until("the new key is taken", async || {
        read(&api, &new.sign(&claims())).await.status == 200
    })
    .await;
    assert_eq!(read(&api, &old.sign(&claims())).await.status, 401);
}

#[tokio::test]
async fn a_flood_of_unknown_keys_is_one_fetch_per_cooldown() {
    const COOLDOWN: Duration = Duration::from_secs(1);
    let key = Signer::p256("known");
    let issuer = Publisher::start(Says::Keys(key_set(&[&key])));
    let pace = Pace {
        cooldown: COOLDOWN,
        ..slow()
    };
    let api = service(&[issuer.config()], pace).await;
    let stranger = Signer::p256("known");
    let unknown = |number: usize| {
        let header = serde_json::json!({"alg": "ES256", "kid": format!("unknown-{number}")});
        stranger.sign_text("ES256", &header.to_string(), &claims().to_string())
    };
    tokio::time::sleep(COOLDOWN).await;
    let (before, since) = (issuer.asked(), Instant::now());
    for round in 0..3 {
        let tokens: Vec<_> = (0..300).map(|n| unknown(1000 * round + n)).collect();
        let answers = join_all(tokens.iter().map(|token| read(&api, token))).await;
        assert!(answers.iter().all(|a| a.problem() == (401, "AUT-002")));
        let known = with("round", round);
        assert_eq!(read(&api, &key.sign(&known)).await.status, 200);
    }
    let cooldowns = since.elapsed().as_millis() / COOLDOWN.as_millis();
    let fetches = issuer.asked() - before;
    assert!(fetches >= 1, "nobody asked");
    assert!(
        fetches <= 1 + usize::try_from(cooldowns).unwrap(),
        "{fetches} in {cooldowns}"
    );
}

#[tokio::test]
async fn many_requests_that_wait_for_a_new_key_share_one_fetch() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let issuer = Publisher::start(Says::Keys(key_set(&[&old])));
    let pace = Pace {
        cooldown: Duration::from_secs(1),
        ..slow()
    };
    let api = service(&[issuer.config()], pace).await;
    issuer.publish(&[&old, &new]);
    tokio::time::sleep(pace.cooldown).await;
    let before = issuer.asked();
    let tokens: Vec<_> = (0..200).map(|n| new.sign(&with("number", n))).collect();
    let answers = join_all(tokens.iter().map(|token| read(&api, token))).await;
    let refused = answers.iter().filter(|answer| answer.status != 200).count();
    assert_eq!((refused, issuer.asked() - before), (0, 1));
}

#[tokio::test]
async fn tokens_of_other_issuers_do_not_have_keys_fetched() {
    let key = Signer::p256("a");
    let issuer = Publisher::start(Says::Keys(key_set(&[&key])));
    let api = service(&[issuer.config()], eager()).await;
    let foreign = Signer::p256("b").sign(&with("iss", format!("{ISSUER}/other")));
    assert_eq!(read(&api, &foreign).await.status, 401);
    assert_eq!(read(&api, "a.b.c").await.status, 401);
    assert_eq!(issuer.asked(), 1);
}

//! A watch outlasts requests, but not the token of its caller.

use std::time::Duration;

use hyperfleet_auth::Authentication;
use serde_json::json;
use tempfile::tempdir;

use super::signer::Signer;
use super::world::{authenticator, claims, of_file, slow};
use crate::support::{TestClock, TestDatabase};
use crate::watches::client::Instance;

#[tokio::test]
async fn a_watch_ends_with_the_token_of_its_caller() {
    let folder = tempdir().unwrap();
    let signer = Signer::p256("one");
    let clock = TestClock::at("2026-01-01T10:00:00Z");
    let configs = [of_file(super::world::ISSUER, &folder, &[&signer])];
    let authenticator = authenticator(&configs, slow(), &clock);
    authenticator.fetch_keys_once(Duration::from_secs(20)).await;
    let database = TestDatabase::create().await;
    let store = database.store();
    let instance = Instance::spawn_on(database, store, |api| {
        api.authentication = Authentication::On(authenticator);
    });
    let token = format!("Bearer {}", signer.sign(&claims()));
    let headers = [("authorization", token.as_str())];
    let mut watch = instance.watch_with(&headers, "/plains").await;
    watch.bookmark().await;
    let make = async |name: &str| {
        let mut connection = instance.api.database.connect().await;
        sqlx::query(
            "INSERT INTO resources (id, kind, name, generation, created_at, updated_at, created_by, updated_by, spec)
             VALUES (gen_random_uuid(), 'Plain', $1, 1, now(), now(), 'x', 'x', '{}')",
        )
        .bind(name)
        .execute(&mut connection)
        .await
        .unwrap();
    };
    make("before").await;
    assert_eq!(watch.changes(1).await, ["ADDED before"]);
    clock.advance(3600 + 31);
    make("after").await;
    let error = watch.change().await;
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["code"], json!("HYPERFLEET-AUT-003"));
    assert!(watch.try_next().await.is_none());
}

//! An operator's approval of removals that the brake holds: a key of etcd that expires.

use anyhow::Context as _;
use hyperfleet_fleet::keys::{Error, KeyOperation, KeyStore, Transaction};
use hyperfleet_server_kit::program::print;

/// The command that approves removals, for messages.
pub const COMMAND: &str = "hyperfleet-fleet-adapter approve-removals";
/// How long removals are approved.
const SECONDS: u32 = 600;

/// Prefix of an adapter's keys, for a fleet below a prefix such as `/fleet/v3/`: beside fleet's keys, because
/// fleet reports unknown keys below its own prefix.
pub fn keys(fleet_prefix: &str, adapter: &str) -> String {
    let fleet = fleet_prefix.trim_matches('/');
    format!("/hyperfleet/fleet-adapter/{fleet}/{adapter}/")
}

fn key(keys: &str) -> String {
    format!("{keys}approval")
}

/// Approves the removals of an adapter of this fleet, and says so.
///
/// # Errors
/// The approval cannot be written.
pub async fn approve_by(
    store: &impl KeyStore,
    fleet_prefix: &str,
    adapter: &str,
) -> anyhow::Result<()> {
    let approved = approve(store, &keys(fleet_prefix, adapter)).await;
    approved.context("cannot write the approval to etcd")?;
    let minutes = SECONDS / 60;
    print(&format!(
        "Removals of the adapter {adapter} are approved for {minutes} minutes.\n"
    ));
    Ok(())
}

/// Approves the removals of the adapter with these [`keys`] for ten minutes.
pub async fn approve<S: KeyStore>(store: &S, keys: &str) -> Result<(), Error> {
    let lease = store.grant(SECONDS).await?;
    let put = KeyOperation::Put(key(keys), b"yes".to_vec(), Some(lease));
    store
        .commit(Transaction {
            then: vec![put],
            ..Transaction::default()
        })
        .await?;
    Ok(())
}

/// Whether removals are approved now.
pub async fn is_approved<S: KeyStore>(store: &S, keys: &str) -> Result<bool, Error> {
    let key = key(keys);
    let found = store.commit(Transaction {
        then: vec![KeyOperation::Get(key.clone())],
        ..Transaction::default()
    });
    Ok(found.await?.entry(&key).is_some())
}

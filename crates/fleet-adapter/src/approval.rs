//! An operator's yes to removals that the brake holds: a key of etcd that goes by itself.

use hyperfleet_fleet::keys::{Error, KeyStore, Operation, Transaction};

/// For how long removals are approved, in seconds.
pub const SECONDS: u32 = 600;

/// Where the keys of an adapter are, for a fleet below a prefix such as `/fleet/v3/`: beside those of fleet, which knows
/// all of its own.
pub fn keys(fleet_prefix: &str, adapter: &str) -> String {
    let fleet = fleet_prefix.trim_matches('/');
    format!("/hyperfleet/fleet-adapter/{fleet}/{adapter}/")
}

fn key(keys: &str) -> String {
    format!("{keys}approval")
}

/// Approves the removals of the adapter with these [`keys`] for ten minutes.
///
/// # Errors
/// Those of the store.
pub async fn approve<S: KeyStore>(store: &S, keys: &str) -> Result<(), Error> {
    let lease = store.grant(SECONDS).await?;
    let put = Operation::Put(key(keys), b"yes".to_vec(), Some(lease));
    store
        .commit(Transaction {
            then: vec![put],
            ..Transaction::default()
        })
        .await?;
    Ok(())
}

/// Whether removals are approved now.
///
/// # Errors
/// Those of the store.
pub async fn is_approved<S: KeyStore>(store: &S, keys: &str) -> Result<bool, Error> {
    let key = key(keys);
    let found = store.commit(Transaction {
        then: vec![Operation::Get(key.clone())],
        ..Transaction::default()
    });
    Ok(found.await?.entry(&key).is_some())
}

//! The throughput of etcd alone on this machine: transactions like those of a new unit, by the same client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys::{Guard, KeyOperation, KeyStore as _, Transaction};

use super::connect;
use super::figures::{print_row, print_times, print_title};
use super::processes::Etcd;
use super::steps::CONNECTIONS;

const TOGETHER: usize = 10_000;
const ALONE: usize = 200;
/// Approximate size of a stored unit of this bench.
const VALUE_BYTES: usize = 350;

/// Creates two keys.
fn transaction(number: usize) -> Transaction {
    let keys = ["unit", "want"].map(|family| format!("/bench/{family}/{number}"));
    Transaction {
        guards: keys.clone().map(Guard::Absent).into(),
        then: keys
            .map(|key| KeyOperation::Put(key, vec![b'x'; VALUE_BYTES], None))
            .into(),
        otherwise: Vec::new(),
    }
}

async fn commit(store: &EtcdKeys, number: usize) {
    let outcome = store.commit(transaction(number)).await;
    assert!(outcome.expect("etcd answers").succeeded, "it is a new key");
}

/// Transactions per second, with as many in parallel as the bench has requests.
pub(crate) async fn measure() -> f64 {
    print_title("etcd alone, a transaction of two new keys");
    let etcd = Etcd::start().await;
    let store = connect(&etcd);
    let mut times = Vec::new();
    for number in 0..ALONE {
        let begun = Instant::now();
        commit(&store, number).await;
        times.push(begun.elapsed());
    }
    print_times("one at a time", &mut times);
    let next = Arc::new(AtomicUsize::new(ALONE));
    let begun = Instant::now();
    let clients = (0..CONNECTIONS).map(|_| {
        let (store, next) = (store.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= ALONE + TOGETHER {
                    return;
                }
                commit(&store, number).await;
            }
        })
    });
    for client in join_all(clients).await {
        client.expect("it does not fail");
    }
    let rate = TOGETHER as f64 / begun.elapsed().as_secs_f64();
    print_row(&format!("{CONNECTIONS} at once"), &format!("{rate:.0}/s"));
    rate
}

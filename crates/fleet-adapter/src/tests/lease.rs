use hyperfleet_testkit::MemoryKeys;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

struct Replica {
    leads: watch::Receiver<bool>,
    tenure: Tenure,
    stop: Option<oneshot::Sender<()>>,
    kept: tokio::task::JoinHandle<()>,
}

impl Replica {
    fn start(keys: &MemoryKeys, name: &str) -> Self {
        let keeper = LeaseKeeper::new(keys.clone(), "/lease".to_owned(), name.to_owned(), 15);
        let (stop, stopped) = oneshot::channel::<()>();
        Self {
            leads: keeper.leads(),
            tenure: keeper.tenure(),
            stop: Some(stop),
            kept: tokio::spawn(keeper.run(async move {
                let _ = stopped.await;
            })),
        }
    }

    async fn until(&mut self, leads: bool) {
        let said = self.leads.wait_for(|now| *now == leads);
        timeout(Duration::from_mins(2), said)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_hands_over_to_the_next_replica() {
    let keys = MemoryKeys::new();
    let mut first = Replica::start(&keys, "first");
    first.until(true).await;
    let mut second = Replica::start(&keys, "second");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(first.tenure.is_certain());
    assert!(!*second.leads.borrow() && !second.tenure.is_certain());
    drop(first.stop.take());
    (&mut first.kept).await.unwrap();
    assert!(!*first.leads.borrow());
    second.until(true).await;
    assert!(second.tenure.is_certain());
}

#[tokio::test(start_paused = true)]
async fn a_killed_replica_is_followed_after_its_lease() {
    let keys = MemoryKeys::new();
    let mut first = Replica::start(&keys, "first");
    first.until(true).await;
    let mut second = Replica::start(&keys, "second");
    first.kept.abort();
    second.until(true).await;
    assert!(!first.tenure.is_certain(), "it may write no more");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_revoked_is_noticed_and_taken_again() {
    let keys = MemoryKeys::new();
    let mut replica = Replica::start(&keys, "first");
    replica.until(true).await;
    let created = holder(&keys).await.unwrap();
    for lease in 1..10 {
        keys.revoke(Lease(lease)).await.unwrap();
    }
    assert_eq!(holder(&keys).await, None);
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(holder(&keys).await.unwrap() > created);
    assert!(replica.tenure.is_certain());
    assert_eq!(replica.tenure.term(), 2);
}

/// Creation revision of the key; `None` while the lease is free.
async fn holder(keys: &MemoryKeys) -> Option<i64> {
    let found = keys.commit(Transaction {
        then: vec![KeyOperation::Get("/lease".to_owned())],
        ..Transaction::default()
    });
    let found = found.await.unwrap();
    let entry = found.entry("/lease")?;
    assert_eq!(entry.value, b"first");
    Some(entry.created)
}

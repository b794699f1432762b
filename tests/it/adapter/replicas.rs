//! Several replicas of an adapter, and how one ends.

use std::time::Duration;

use hyperfleet_adapter::{Kind, Runner, Settings};
use tokio::sync::watch;

use super::{NAME, Noting, Running, api_of, quick, service, start, until_reconciled};
use crate::support::until;

#[tokio::test]
async fn only_the_holder_of_the_lease_works() {
    let api = service().await;
    let adapters = [Noting::content(), Noting::content()];
    let (elect, _) = watch::channel([false, false]);
    let runners = adapters.iter().enumerate().map(|(number, adapter)| {
        let (leads, is_leading) = watch::channel(false);
        let mut elected = elect.subscribe();
        tokio::spawn(async move {
            while elected.changed().await.is_ok() {
                leads.send_replace(elected.borrow_and_update()[number]);
            }
        });
        let settings = quick(&["carts"]);
        Running::start(Runner::with_lease(
            api_of(&api),
            settings,
            adapter.clone(),
            is_leading,
        ))
    });
    let runners: Vec<_> = runners.collect();
    let first = api.make("/carts", "Cart", "first").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(adapters.iter().all(|adapter| adapter.calls().is_empty()));
    elect.send_replace([true, false]);
    until_reconciled(&api, &first).await;
    elect.send_replace([false, true]);
    // Who takes over begins with everything.
    until("the other looks at it, too", async || {
        adapters[1].calls_of(&first) == 1
    })
    .await;
    let second = api.make("/carts", "Cart", "second").await;
    until_reconciled(&api, &second).await;
    assert_eq!(adapters[0].calls_of(&second), 0);
    for runner in runners {
        runner.stop().await;
    }
}

#[tokio::test]
async fn work_is_cancelled_when_the_lease_is_lost() {
    let api = service().await;
    let adapter = Noting::content().slow(Duration::from_hours(1));
    let (leads, is_leading) = watch::channel(true);
    let settings = quick(&["carts"]);
    let runner = Runner::with_lease(api_of(&api), settings, adapter.clone(), is_leading);
    let running = Running::start(runner);
    let cart = api.make("/carts", "Cart", "cart").await;
    until("it is worked on", async || adapter.calls_of(&cart) == 1).await;
    leads.send_replace(false);
    leads.send_replace(true);
    leads.send_replace(false);
    tokio::time::sleep(Duration::from_millis(100)).await;
    leads.send_replace(true);
    until("it is worked on again", async || {
        adapter.calls_of(&cart) == 2
    })
    .await;
    // Nor is it waited for longer than the grace period.
    drop(running);
}

#[tokio::test]
async fn what_is_under_way_is_finished_within_the_grace_period() {
    let api = service().await;
    let slow = Noting::content().slow(Duration::from_millis(300));
    let running = start(&api, quick(&["carts"]), &slow);
    let cart = api.make("/carts", "Cart", "cart").await;
    until("it is worked on", async || slow.calls_of(&cart) == 1).await;
    running.stop().await;
    assert!(super::is_reconciled(&api, &cart).await);
    let other = api.make("/carts", "Cart", "other").await;
    let endless = Noting::content().slow(Duration::from_hours(1));
    let settings = Settings {
        grace: Duration::from_millis(100),
        poll_interval: Duration::from_millis(50),
        ..Settings::new(NAME, vec![Kind::new("carts")])
    };
    let running = start(&api, settings, &endless);
    until("it is worked on", async || endless.calls_of(&other) == 1).await;
    running.stop().await;
    assert!(!super::is_reconciled(&api, &other).await);
}

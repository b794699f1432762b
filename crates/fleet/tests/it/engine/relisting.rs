//! A watch after a compaction: its list takes long, is cancelled, and the store is restored meanwhile.

use std::time::Duration;

use hyperfleet_fleet::registry::{Prefix, Registry, WatchScope, WatchUpdate};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_testkit::{MemoryKeys, until};

use super::held::Held;
use super::{World, body};

#[tokio::test(start_paused = true)]
async fn a_long_list_comes_to_its_end_however_often_it_is_given_up() {
    let store = MemoryKeys::new();
    let registry = Registry::new(store.clone(), Prefix::default());
    let body = body(&[]);
    for number in 0..5_000 {
        let name = format!("u{number}.service");
        let created = registry.create_unit(&name, &body, DesiredState::Loaded, None);
        created.await.unwrap();
    }
    let revision = registry.snapshot().await.unwrap().revision;
    store.compact(revision);
    // 40 parts, each of which takes up to 5 ms.
    let slow = Registry::new(Held::new(store, 1), Prefix::default());
    let mut watch = slow.watch(&WatchScope::Everything, 1).unwrap();
    let mut given_up = 0;
    let told = loop {
        match tokio::time::timeout(Duration::from_millis(12), watch.next()).await {
            Ok(Ok(told)) => break told,
            // Lost responses are requested again.
            Ok(Err(_)) => {}
            Err(_) => given_up += 1,
        }
        assert!(given_up < 1_000, "it begins over and over");
    };
    assert!(given_up > 3, "it was listed at one go");
    let WatchUpdate::Relisted {
        revision: at,
        found,
    } = told
    else {
        panic!("{told:?}");
    };
    assert_eq!((found.len(), at), (10_000, revision));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_store_that_goes_back_meanwhile_begins_again() {
    let store = MemoryKeys::new();
    let registry = Registry::new(store.clone(), Prefix::default());
    let body = body(&[]);
    let create = async |number: u32| {
        let name = format!("u{number}.service");
        let created = registry.create_unit(&name, &body, DesiredState::Loaded, None);
        created.await.unwrap();
    };
    for number in 0..1_000 {
        create(number).await;
    }
    let snapshot = store.restored();
    for number in 1_000..2_000 {
        create(number).await;
    }
    store.compact(registry.snapshot().await.unwrap().revision);
    let slow = Registry::new(Held::calmed(store.clone()), Prefix::default());
    let mut watch = slow.watch(&WatchScope::Everything, 1).unwrap();
    // Time for a few parts of its list.
    let begun = tokio::time::timeout(Duration::from_millis(12), watch.next()).await;
    assert!(begun.is_err(), "it was listed at one go");
    store.become_as(&snapshot);
    let told = watch.next().await.unwrap();
    let WatchUpdate::Relisted { revision, found } = told else {
        panic!("nothing was listed");
    };
    let then = Registry::new(snapshot, Prefix::default());
    let then = then.snapshot().await.unwrap();
    assert_eq!((found.len(), revision), (2_000, then.revision));
}

/// It has written more than the restored etcd knows.
#[tokio::test]
async fn an_engine_goes_on_with_an_etcd_that_was_restored() {
    let world = World::new(MemoryKeys::new());
    world.machine("m1", &[]).await;
    let engine = world.engine("m1");
    world.launch("a.service", &[]).await;
    world.until_placed(&[("a.service", "m1")]).await;
    let snapshot = world.store.restored();
    for number in 0..30 {
        world.launch(&format!("b{number}.service"), &[]).await;
    }
    until("all are placed", async || world.places().await.len() == 31).await;
    world.store.become_as(&snapshot);
    world.launch("c.service", &[]).await;
    world
        .until_placed(&[("a.service", "m1"), ("c.service", "m1")])
        .await;
    engine.stop().await;
}

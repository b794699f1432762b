//! A watch after a compaction, read by somebody who has other things to do.

use std::time::Duration;

use hyperfleet_fleet::registry::{Prefix, Registry, Scope, Told};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_testkit::MemoryKeys;

use super::body;
use super::held::Held;

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
    let mut watch = slow.watch(&Scope::Everything, 1).unwrap();
    let mut given_up = 0;
    let told = loop {
        match tokio::time::timeout(Duration::from_millis(12), watch.next()).await {
            Ok(Ok(told)) => break told,
            // What the network loses is asked for again.
            Ok(Err(_)) => {}
            Err(_) => given_up += 1,
        }
        assert!(given_up < 1_000, "it begins over and over");
    };
    assert!(given_up > 3, "it was listed at one go");
    let Told::Relisted {
        revision: at,
        found,
    } = told
    else {
        panic!("{told:?}");
    };
    assert_eq!((found.len(), at), (10_000, revision));
}

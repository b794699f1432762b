//! Outages of etcd.

use std::time::Duration;

use hyperfleet_fleet::etcd::{EtcdKeys, Settings};
use hyperfleet_fleet::keys::{
    self, Guard, KeyOperation, KeyStore as _, Renewal, Revision, Transaction,
};
use hyperfleet_fleet::registry::{
    Error, KeyChange, Prefix, Registry, Reports, Snapshot, Watch, WatchScope, WatchUpdate, Written,
};
use hyperfleet_fleet_model::unit::DesiredState;

use rustix::process::Signal;

use super::{body, machine, place, state};
use hyperfleet_testkit::{PATIENCE, TestEtcd, etcd_settings, until};

async fn registry(server: &TestEtcd) -> Registry<EtcdKeys> {
    let store = EtcdKeys::connect(etcd_settings(&server.url()))
        .await
        .unwrap();
    Registry::new(store, Prefix::default())
}

#[tokio::test]
async fn a_server_that_is_away_fails_no_call_while_another_answers() {
    let (server, mut away) = tokio::join!(TestEtcd::start(), TestEtcd::start());
    away.kill();
    let settings = Settings {
        endpoints: vec![server.url(), away.url()],
        ..etcd_settings(&server.url())
    };
    let store = EtcdKeys::connect(settings).await.unwrap();
    let lease = store.grant(60).await.unwrap();
    let put = KeyOperation::Put("/a".into(), "1".into(), Some(lease));
    for call in 0..200 {
        let transaction = Transaction {
            then: vec![put.clone()],
            ..Transaction::default()
        };
        let committed = store.commit(transaction).await;
        assert!(committed.is_ok(), "commit {call}: {committed:?}");
        let kept = store.renew(lease).await;
        assert!(
            matches!(kept, Ok(Renewal::Renewed)),
            "keep {call}: {kept:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_lost_when_etcd_is_killed_and_comes_back() {
    use hyperfleet_fleet::registry::{Acquired, Registered};
    let mut server = TestEtcd::start().await;
    let settings = Settings {
        request_timeout: Duration::from_secs(2),
        ..etcd_settings(&server.url())
    };
    let hasty = EtcdKeys::connect(settings).await.unwrap();
    let hasty = Registry::new(hasty, Prefix::default());
    let registry = registry(&server).await;
    let leader = super::leader("m1", 1);
    let Acquired::Leading(leading) = registry.acquire_leadership(&leader, 60).await.unwrap() else {
        panic!("nobody else leads");
    };
    let Registered::As(registration) = registry
        .register_machine("m1", &machine(&[]), 60)
        .await
        .unwrap()
    else {
        panic!("nobody else is m1");
    };
    registry
        .create_unit("a.service", &body("1"), DesiredState::Launched, None)
        .await
        .unwrap();
    let before = registry.snapshot().await.unwrap();
    let mut watch = registry
        .watch(&WatchScope::Everything, before.revision)
        .unwrap();
    let unit = registry.find_unit("a.service").await.unwrap().unwrap();
    let mut reports = Reports::new(registration.clone());
    let current = [("a.service".to_owned(), state("active"))].into();

    server.kill();
    let failed = hasty
        .create_unit("b.service", &body("1"), DesiredState::Loaded, None)
        .await;
    assert!(
        matches!(failed, Err(Error::Store(keys::Error::Unavailable { .. }))),
        "{failed:?}"
    );
    let failed = hasty.carry_out(&leading, &[place(&unit, "m1")]).await;
    assert!(
        matches!(failed, Err(Error::Store(keys::Error::Unavailable { .. }))),
        "{failed:?}"
    );
    let failed = reports.publish(&hasty, &current).await;
    assert!(
        matches!(failed, Err(Error::Store(keys::Error::Unavailable { .. }))),
        "{failed:?}"
    );
    assert!(hasty.renew_machine(&registration).await.is_err());

    server.resume().await;
    until("the registry is there again", async || {
        hasty.snapshot().await.is_ok()
    })
    .await;
    // The term and the registration live on, and failed calls succeed.
    registry.renew_leadership(&leading).await.unwrap();
    registry.renew_machine(&registration).await.unwrap();
    assert_eq!(reports.publish(&registry, &current).await.unwrap(), 1);
    let created = registry
        .create_unit("b.service", &body("1"), DesiredState::Loaded, None)
        .await;
    let Written::At(last) = created.unwrap() else {
        panic!("it was not created while etcd was away");
    };
    // The watch resumes.
    let mut followed = before;
    while followed.revision < last {
        match tokio::time::timeout(PATIENCE, watch.next()).await.unwrap() {
            Ok(WatchUpdate::Changes { revision, changes }) => {
                followed.extend(changes);
                followed.revision = revision;
            }
            Ok(WatchUpdate::Relisted { .. }) => panic!("nothing was compacted"),
            Err(error) => {
                assert!(
                    matches!(error, Error::Store(keys::Error::Unavailable { .. })),
                    "{error:?}"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    let mut read = registry.snapshot().await.unwrap();
    read.revision = followed.revision;
    assert_eq!(followed, read);
}

#[tokio::test]
async fn a_frozen_server_blocks_calls_no_longer_than_the_timeout() {
    let server = TestEtcd::start().await;
    let settings = Settings {
        request_timeout: Duration::from_millis(500),
        ..etcd_settings(&server.url())
    };
    let store = EtcdKeys::connect(settings).await.unwrap();
    let hasty = Registry::new(store, Prefix::default());
    until("it answers", async || hasty.snapshot().await.is_ok()).await;
    let revision = hasty.snapshot().await.unwrap().revision;
    let mut watch = hasty.watch(&WatchScope::Everything, revision).unwrap();
    let nothing = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    assert!(nothing.is_err(), "the watch waits: {nothing:?}");
    let one = body("1");
    server.signal(Signal::STOP);
    let created = hasty.create_unit("a.service", &one, DesiredState::Loaded, None);
    let created = tokio::time::timeout(Duration::from_secs(20), created).await;
    let created = created.expect("an answer in time");
    assert!(
        matches!(created, Err(Error::Store(keys::Error::Unavailable { .. }))),
        "{created:?}"
    );
    server.signal(Signal::CONT);
    // Whether it was written before the freeze or after is unknown. The watch reports it once.
    let registry = registry(&server).await;
    let again = registry.create_unit("a.service", &one, DesiredState::Loaded, None);
    again.await.unwrap();
    let told = tokio::time::timeout(PATIENCE, watch.next()).await;
    let told = told.expect("the watch goes on").unwrap();
    assert!(
        matches!(&told, WatchUpdate::Changes { changes, .. } if changes.len() == 2),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_no_reason_to_wait_for_ever() {
    let settings = Settings {
        request_timeout: Duration::from_millis(300),
        // The discard port has no listener.
        ..Settings::plain(vec!["http://127.0.0.1:9".into()])
    };
    let store = EtcdKeys::connect(settings).await.unwrap();
    let registry = Registry::new(store, Prefix::default());
    let read = tokio::time::timeout(Duration::from_secs(20), registry.snapshot()).await;
    let read = read.expect("an answer in time");
    assert!(
        matches!(read, Err(Error::Store(keys::Error::Unavailable { .. }))),
        "{read:?}"
    );
}

/// etcd answers pure comparisons from the memory of the asked server, if it may.
#[tokio::test]
async fn a_server_that_is_cut_off_confirms_no_term() {
    let servers: [TestEtcd; 3] = TestEtcd::start_cluster().await;
    let settings = Settings {
        request_timeout: Duration::from_secs(2),
        ..etcd_settings(&servers[0].url())
    };
    let store = EtcdKeys::connect(settings).await.unwrap();
    let put = KeyOperation::Put("/engine".to_owned(), b"1".to_vec(), None);
    let write = Transaction {
        then: vec![put],
        ..Transaction::default()
    };
    let created = store.commit(write).await.unwrap().revision;
    let compare = Transaction {
        guards: vec![Guard::Created("/engine".to_owned(), created)],
        ..Transaction::default()
    };
    let outcome = store.commit(compare.clone()).await.unwrap();
    assert!(outcome.succeeded && outcome.found.is_empty(), "{outcome:?}");
    for other in &servers[1..] {
        other.signal(Signal::STOP);
    }
    let answer = store.commit(compare.clone()).await;
    assert!(
        matches!(answer, Err(keys::Error::Unavailable { .. })),
        "{answer:?}"
    );
    for other in &servers[1..] {
        other.signal(Signal::CONT);
    }
    until("they are one cluster again", async || {
        store.commit(compare.clone()).await.is_ok()
    })
    .await;
}

/// etcd sends missed events as they were written, up to a thousand writes in a message.
#[tokio::test]
async fn a_watch_that_has_missed_more_than_a_message_holds_goes_on() {
    let server = TestEtcd::start().await;
    let registry = registry(&server).await;
    let before = registry.snapshot().await.unwrap();
    let mut watch = registry
        .watch(&WatchScope::Everything, before.revision)
        .unwrap();
    let mut client = etcd_client::Client::connect([server.url()], None)
        .await
        .unwrap();
    let value = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        let key = "/fleet/v3/large";
        client.put(key, value.clone(), None).await.unwrap();
    }
    let created = registry
        .create_unit("a.service", &body("1"), DesiredState::Loaded, None)
        .await;
    let Written::At(last) = created.unwrap() else {
        panic!("there is no such unit");
    };
    let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
    let WatchUpdate::Relisted { revision, found } = told.unwrap() else {
        panic!("100 MiB fit a message");
    };
    assert!(revision >= last);
    assert_eq!(
        Snapshot::of(revision, found),
        registry.snapshot().await.unwrap()
    );
    // And onwards.
    let created = registry
        .create_unit("b.service", &body("1"), DesiredState::Loaded, None)
        .await;
    let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
    assert!(
        matches!(told.unwrap(), WatchUpdate::Changes { revision, .. } if Written::At(revision) == created.unwrap())
    );
}

/// Waits, across failures, until the watch lists everything.
async fn relisted(watch: &mut Watch<EtcdKeys>) -> (Revision, Vec<KeyChange>) {
    let mut told = Err(Error::Deposed);
    until("the list arrives", async || {
        told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        told.is_ok()
    })
    .await;
    let Ok(WatchUpdate::Relisted { revision, found }) = told else {
        panic!("{told:?}");
    };
    (revision, found)
}

/// etcd sends nothing for a future revision until it is reached, possibly in another history.
#[tokio::test]
async fn a_watch_of_an_etcd_that_went_back_starts_over() {
    let mut server = TestEtcd::start().await;
    let (registry, body) = (registry(&server).await, body("1"));
    for number in 0..20 {
        let name = format!("a{number}.service");
        let created = registry.create_unit(&name, &body, DesiredState::Loaded, None);
        created.await.unwrap();
    }
    let before = registry.snapshot().await.unwrap();
    let mut watch = registry
        .watch(&WatchScope::Everything, before.revision)
        .unwrap();
    server.lose_data();
    server.resume().await;
    let (revision, found) = relisted(&mut watch).await;
    assert!(revision < before.revision && found.is_empty(), "{found:?}");
    let created = registry.create_unit("b.service", &body, DesiredState::Loaded, None);
    let created = created.await.unwrap();
    let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
    assert!(
        matches!(told.unwrap(), WatchUpdate::Changes { revision, .. } if Written::At(revision) == created)
    );
}

/// etcd was restored and has passed all revisions that the watch knows: of a list, or of a deletion that it
/// delivered last.
#[tokio::test]
async fn a_watch_of_a_restored_etcd_that_is_ahead_starts_over() {
    let mut server = TestEtcd::start().await;
    let (registry, body) = (registry(&server).await, body("1"));
    let create = async |name: &str| {
        let created = registry.create_unit(name, &body, DesiredState::Loaded, None);
        created.await.unwrap();
    };
    create("a.service").await;
    for is_told_a_removal in [false, true] {
        let snapshot = server.save();
        if !is_told_a_removal {
            create("b.service").await;
        }
        let (_, position) = registry.list(&WatchScope::Everything).await.unwrap();
        let mut watch = registry.watch(&WatchScope::Everything, position).unwrap();
        if is_told_a_removal {
            let unit = registry.find_unit("a.service").await.unwrap().unwrap();
            registry.destroy_unit(&unit).await.unwrap();
            let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
            assert!(matches!(told.unwrap(), WatchUpdate::Changes { .. }));
        }
        server.restore(&snapshot, None).await;
        let mut client = etcd_client::Client::connect([server.url()], None)
            .await
            .unwrap();
        for _ in 0..20 {
            client.put("/elsewhere", "", None).await.unwrap();
        }
        let (revision, found) = relisted(&mut watch).await;
        let units = Snapshot::of(revision, found).desired;
        assert!(
            units.contains_key("a.service") && units.len() == 1,
            "{units:?}"
        );
    }
}

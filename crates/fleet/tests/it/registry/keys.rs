//! Requirements of every key store.

use hyperfleet_fleet::keys::{
    Error, Guard, KeyOperation, KeyStore, KeyWatch as _, Range, Renewal,
    TRANSACTION_OPERATIONS_MAX, Transaction,
};

use super::{World, in_every_store};

in_every_store! {
    guards_hold_or_nothing_is_done
    a_transaction_is_one_revision
    the_past_can_be_read_and_the_future_not
    what_is_too_much_or_twice_is_refused
    nothing_is_put_on_a_lease_that_is_gone
    a_lease_ends_once
    keys_are_listed_in_order_and_to_the_limit;
    own
    a_compacted_past_cannot_be_read_nor_watched
}

fn key<S>(world: &World<S>, name: &str) -> String {
    format!("{}{name}", world.prefix)
}

fn put<S>(world: &World<S>, name: &str) -> KeyOperation {
    KeyOperation::Put(key(world, name), name.into(), None)
}

fn doing(guards: Vec<Guard>, then: Vec<KeyOperation>) -> Transaction {
    Transaction {
        guards,
        then,
        otherwise: Vec::new(),
    }
}

async fn guards_hold_or_nothing_is_done<S: KeyStore>(world: World<S>) {
    let a = key(&world, "a");
    let commit = |guards, then| world.store.commit(doing(guards, then));
    let absent = || vec![Guard::Absent(a.clone())];
    let first = commit(absent(), vec![put(&world, "a")]).await.unwrap();
    assert!(first.succeeded);
    let otherwise = Transaction {
        otherwise: vec![
            KeyOperation::Get(a.clone()),
            KeyOperation::Get(key(&world, "b")),
        ],
        ..doing(absent(), vec![put(&world, "b")])
    };
    let second = world.store.commit(otherwise).await.unwrap();
    assert!(!second.succeeded);
    let [found] = &second.found[..] else {
        panic!("b was not put: {:?}", second.found);
    };
    assert_eq!(
        (found.created, found.modified),
        (first.revision, first.revision)
    );
    let again = commit(Vec::new(), vec![put(&world, "a")]).await.unwrap();
    for (guard, holds) in [
        (Guard::Created(a.clone(), first.revision), true),
        (Guard::Created(a.clone(), again.revision), false),
        (Guard::Modified(a.clone(), first.revision), false),
        (Guard::Modified(a.clone(), again.revision), true),
        (Guard::Modified(key(&world, "b"), again.revision), false),
    ] {
        let outcome = commit(vec![guard.clone()], Vec::new()).await.unwrap();
        assert_eq!(outcome.succeeded, holds, "{guard:?}");
    }
    // A key that is deleted and put again is a new one.
    commit(Vec::new(), vec![KeyOperation::Delete(a.clone())])
        .await
        .unwrap();
    let reborn = commit(absent(), vec![put(&world, "a")]).await.unwrap();
    assert!(reborn.succeeded);
    let old = Guard::Created(a.clone(), first.revision);
    assert!(!commit(vec![old], Vec::new()).await.unwrap().succeeded);
}

async fn a_transaction_is_one_revision<S: KeyStore>(world: World<S>) {
    let before = world
        .store
        .commit(doing(Vec::new(), vec![put(&world, "z")]))
        .await
        .unwrap();
    let range = Range::below(&world.prefix);
    let mut watch = world.store.watch(range, before.revision.into());
    let both = doing(
        Vec::new(),
        vec![
            put(&world, "a"),
            put(&world, "b"),
            KeyOperation::Delete(key(&world, "z")),
        ],
    );
    let outcome = world.store.commit(both).await.unwrap();
    let batch = loop {
        let batch = watch.next().await.unwrap();
        if !batch.events.is_empty() {
            break batch;
        }
    };
    let modified = |event: &hyperfleet_fleet::keys::Event| event.entry.as_ref().map(|e| e.modified);
    let events: Vec<_> = batch.events.iter().map(modified).collect();
    let revision = Some(outcome.revision);
    assert_eq!(events, [revision, revision, None]);
}

async fn the_past_can_be_read_and_the_future_not<S: KeyStore>(world: World<S>) {
    let range = Range::below(&world.prefix);
    let first = world
        .store
        .commit(doing(Vec::new(), vec![put(&world, "a")]))
        .await
        .unwrap();
    let gone = KeyOperation::Delete(key(&world, "a"));
    let second = world
        .store
        .commit(doing(Vec::new(), vec![gone, put(&world, "b")]))
        .await
        .unwrap();
    let then = world
        .store
        .list(range.clone(), 10, Some(first.revision))
        .await
        .unwrap();
    let names: Vec<_> = then.entries.iter().map(|e| e.value.as_slice()).collect();
    assert_eq!((names, then.revision), (vec![&b"a"[..]], first.revision));
    let future = second.revision + (1 << 40);
    let listed = world.store.list(range, 10, Some(future)).await;
    assert!(matches!(listed, Err(Error::Future)), "{listed:?}");
}

async fn what_is_too_much_or_twice_is_refused<S: KeyStore>(world: World<S>) {
    let many = |count: usize| (0..count).map(|n| put(&world, &format!("k{n}"))).collect();
    let most = doing(Vec::new(), many(TRANSACTION_OPERATIONS_MAX));
    world.store.commit(most).await.unwrap();
    let more = doing(Vec::new(), many(TRANSACTION_OPERATIONS_MAX + 1));
    let refused = world.store.commit(more).await;
    assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
    let guard = |n| Guard::Absent(key(&world, &format!("x{n}")));
    let guards = doing(
        (0..=TRANSACTION_OPERATIONS_MAX).map(guard).collect(),
        Vec::new(),
    );
    assert!(world.store.commit(guards).await.is_err());
    for twice in [
        vec![put(&world, "a"), put(&world, "a")],
        vec![put(&world, "a"), KeyOperation::Delete(key(&world, "a"))],
    ] {
        let refused = world.store.commit(doing(Vec::new(), twice)).await;
        assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
    }
    assert_eq!(world.get("a").await, None);
}

async fn nothing_is_put_on_a_lease_that_is_gone<S: KeyStore>(world: World<S>) {
    let lease = world.store.grant(60).await.unwrap();
    let on_lease = KeyOperation::Put(key(&world, "a"), b"a".to_vec(), Some(lease));
    let both = || doing(Vec::new(), vec![put(&world, "b"), on_lease.clone()]);
    world.store.commit(both()).await.unwrap();
    world.store.revoke(lease).await.unwrap();
    assert_eq!(
        (world.get("a").await, world.get("b").await.as_deref()),
        (None, Some("b"))
    );
    let refused = world.store.commit(both()).await;
    assert!(
        matches!(refused, Err(Error::LeaseGone { .. })),
        "{refused:?}"
    );
    // Put without a lease, a key is on none.
    let lease = world.store.grant(60).await.unwrap();
    let on_lease = KeyOperation::Put(key(&world, "a"), b"a".to_vec(), Some(lease));
    world
        .store
        .commit(doing(Vec::new(), vec![on_lease]))
        .await
        .unwrap();
    world
        .store
        .commit(doing(Vec::new(), vec![put(&world, "a")]))
        .await
        .unwrap();
    world.store.revoke(lease).await.unwrap();
    assert_eq!(world.get("a").await.as_deref(), Some("a"));
}

async fn a_lease_ends_once<S: KeyStore>(world: World<S>) {
    let lease = world.store.grant(60).await.unwrap();
    assert_eq!(world.store.renew(lease).await.unwrap(), Renewal::Renewed);
    world.store.revoke(lease).await.unwrap();
    world.store.revoke(lease).await.unwrap();
    assert_eq!(world.store.renew(lease).await.unwrap(), Renewal::Expired);
}

async fn keys_are_listed_in_order_and_to_the_limit<S: KeyStore>(world: World<S>) {
    for name in ["b", "a", "a-", "b/c"] {
        world.put(name, name).await;
    }
    let range = Range::below(&world.prefix);
    let names = |listing: &hyperfleet_fleet::keys::RangePart| {
        let text = |e: &hyperfleet_fleet::keys::Entry| String::from_utf8(e.value.clone()).unwrap();
        listing.entries.iter().map(text).collect::<Vec<_>>()
    };
    let some = world.store.list(range.clone(), 3, None).await.unwrap();
    assert_eq!(
        (names(&some), some.more),
        (["a", "a-", "b"].map(String::from).to_vec(), true)
    );
    let rest = range.behind(&some.entries[2].key);
    let rest = world
        .store
        .list(rest, 3, Some(some.revision))
        .await
        .unwrap();
    assert_eq!((names(&rest), rest.more), (vec!["b/c".to_owned()], false));
    let all = world.store.list(range, 4, None).await.unwrap();
    assert!(!all.more);
}

async fn a_compacted_past_cannot_be_read_nor_watched<S: KeyStore>(world: World<S>) {
    let range = Range::below(&world.prefix);
    let mut revisions = Vec::new();
    for name in ["a", "b", "c"] {
        let outcome = world
            .store
            .commit(doing(Vec::new(), vec![put(&world, name)]))
            .await;
        revisions.push(outcome.unwrap().revision);
    }
    world.compact(revisions[1]).await;
    let past = world
        .store
        .list(range.clone(), 10, Some(revisions[0]))
        .await;
    assert!(matches!(past, Err(Error::Compacted)), "{past:?}");
    let kept = world
        .store
        .list(range.clone(), 10, Some(revisions[1]))
        .await
        .unwrap();
    assert_eq!(kept.entries.len(), 2);
    let past = world
        .store
        .watch(range.clone(), (revisions[0] - 1).into())
        .next()
        .await;
    assert!(matches!(past, Err(Error::Compacted)), "{past:?}");
    let kept = world
        .store
        .watch(range, revisions[1].into())
        .next()
        .await
        .unwrap();
    assert_eq!(kept.events.len(), 1);
}

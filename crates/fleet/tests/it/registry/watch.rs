//! Watches of the registry.

use std::time::Duration;

use hyperfleet_fleet::keys::{KeyStore, Revision};
use hyperfleet_fleet::registry::{
    KeyChange, Record, Reports, Snapshot, Watch, WatchScope, WatchUpdate,
};
use hyperfleet_fleet_model::unit::DesiredState;

use super::{World, in_every_store, place, state, withdraw};
use hyperfleet_testkit::PATIENCE;

in_every_store! {
    a_snapshot_and_what_changes_is_the_next_snapshot
    an_agent_sees_only_its_own_orders
    unreadable_keys_are_named
    a_watch_that_is_given_up_loses_nothing;
    own
    after_a_compaction_everything_is_listed_again
}

/// All changes up to a revision.
async fn changes_until<S: KeyStore>(watch: &mut Watch<S>, until: Revision) -> Vec<WatchUpdate> {
    let mut all = Vec::new();
    loop {
        let next = tokio::time::timeout(PATIENCE, watch.next());
        let told = next.await.expect("news arrive in time").unwrap();
        let (WatchUpdate::Changes { revision, .. } | WatchUpdate::Relisted { revision, .. }) = told;
        all.push(told);
        if revision >= until {
            return all;
        }
    }
}

fn changes(told: Vec<WatchUpdate>) -> Vec<KeyChange> {
    let of = |told| match told {
        WatchUpdate::Changes { changes, .. } => changes,
        WatchUpdate::Relisted { .. } => panic!("nothing was compacted"),
    };
    told.into_iter().flat_map(of).collect()
}

async fn life<S: KeyStore>(world: &World<S>) -> Revision {
    let leading = world.lead("m1").await;
    world.registry.pass_gate(1).await.unwrap();
    let registration = world.register("m1", 60).await;
    let unit = world.create("a.service").await;
    world.place(&leading, &unit, "m1").await;
    let mut reports = Reports::new(registration);
    let current = [("a.service".to_owned(), state("active"))].into();
    reports.publish(&world.registry, &current).await.unwrap();
    let labels = [("zone".to_owned(), None)].into();
    world.registry.set_labels("m1", &labels).await.unwrap();
    let unit = world.find("a.service").await;
    world
        .registry
        .set_desired_state(&unit, DesiredState::Inactive)
        .await
        .unwrap();
    let unit = world.find("a.service").await;
    let steps = [withdraw(&unit)];
    world.registry.carry_out(&leading, &steps).await.unwrap();
    world.put("want/b.service", r#"{"v":7}"#).await;
    world.put("zzz", "whatever").await;
    world.create("c.service").await.desired.revision
}

async fn a_snapshot_and_what_changes_is_the_next_snapshot<S: KeyStore>(world: World<S>) {
    world.create("b.service").await;
    let mut followed = world.registry.snapshot().await.unwrap();
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, followed.revision)
        .unwrap();
    let last = life(&world).await;
    let changes = changes(changes_until(&mut watch, last).await);
    followed.extend(changes);
    let mut read = world.registry.snapshot().await.unwrap();
    read.revision = followed.revision;
    assert_eq!(followed, read);
    // The list includes everything.
    assert!(!read.states.is_empty() && !read.labels.is_empty() && !read.machines.is_empty());
    assert!(read.leader.is_some() && read.engine_version.is_some());
    assert!(read.is_unreadable("b.service") && read.unknown.len() == 1);
    assert!(read.placements.is_empty() && read.runs.is_empty() && read.desired.len() == 2);
}

async fn an_agent_sees_only_its_own_orders<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let mine = WatchScope::Runs {
        machine: "m1".into(),
    };
    let (there, revision) = world.registry.list(&mine).await.unwrap();
    assert_eq!(there, []);
    let mut watch = world.registry.watch(&mine, revision).unwrap();
    for (name, machine) in [
        ("a.service", "m1"),
        ("b.service", "m11"),
        ("c.service", "m2"),
    ] {
        let unit = world.create(name).await;
        world.place(&leading, &unit, machine).await;
    }
    let unit = world.create("d.service").await;
    let steps = [place(&unit, "m1")];
    world.registry.carry_out(&leading, &steps).await.unwrap();
    let unit = world.find("a.service").await;
    let steps = [withdraw(&unit)];
    world.registry.carry_out(&leading, &steps).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let told = tokio::time::timeout(PATIENCE, watch.next());
        for change in changes(vec![told.await.unwrap().unwrap()]) {
            let KeyChange::Run(key, run) = change else {
                panic!("{change:?}");
            };
            seen.push((key.machine, key.unit, matches!(run, Record::Present(_))));
        }
    }
    let expected = [
        ("a.service", true),
        ("d.service", true),
        ("a.service", false),
    ];
    let expected = expected.map(|(unit, is_there)| ("m1".to_owned(), unit.to_owned(), is_there));
    assert_eq!(seen, expected);
    assert!(
        world
            .registry
            .watch(
                &WatchScope::Runs {
                    machine: "m/1".into()
                },
                1
            )
            .is_err()
    );
}

async fn unreadable_keys_are_named<S: KeyStore>(world: World<S>) {
    let unit = world.create("a.service").await;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, unit.desired.revision)
        .unwrap();
    world.put("unit/a.service", r#"{"v":2}"#).await;
    world.put("pool/p1", "{}").await;
    let last = world.create("b.service").await.desired.revision;
    let changes = changes(changes_until(&mut watch, last).await);
    let unreadable = KeyChange::Unit("a.service".into(), Record::Unreadable { version: Some(2) });
    assert_eq!(changes[0], unreadable);
    let name = format!("{}pool/p1", world.prefix);
    assert_eq!(changes[1], KeyChange::Unknown { name, exists: true });
}

async fn a_watch_that_is_given_up_loses_nothing<S: KeyStore>(world: World<S>) {
    let first = world.create("a.service").await.desired.revision;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, first)
        .unwrap();
    let nothing = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    // On a shared store the others' writes may arrive as progress.
    assert!(
        !matches!(nothing, Ok(Ok(WatchUpdate::Changes { changes, .. })) if !changes.is_empty())
    );
    let last = world.create("b.service").await.desired.revision;
    assert_eq!(
        changes(changes_until(&mut watch, last).await).len(),
        2,
        "what it is and what is wanted"
    );
}

async fn after_a_compaction_everything_is_listed_again<S: KeyStore>(world: World<S>) {
    let first = world.create("a.service").await;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, first.desired.revision)
        .unwrap();
    world.registry.destroy_unit(&first).await.unwrap();
    world.create("b.service").await;
    let newest = world.create("c.service").await.desired.revision;
    world.compact(newest).await;
    let all = changes_until(&mut watch, newest).await;
    let [WatchUpdate::Relisted { revision, found }] = &all[..] else {
        panic!("{all:?}");
    };
    let mut listed = Snapshot::default();
    listed.extend(found.iter().cloned());
    listed.revision = *revision;
    assert_eq!(listed, world.registry.snapshot().await.unwrap());
    assert_eq!(
        listed.bodies.keys().collect::<Vec<_>>(),
        ["b.service", "c.service"]
    );
    // From there it continues.
    let last = world.create("d.service").await.desired.revision;
    assert_eq!(changes(changes_until(&mut watch, last).await).len(), 2);
}

//! Writes of users.

use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{
    BODY_BYTES_MAX, Body, Error, GlobalRule, LISTED_MAX, PART_BYTES_MAX, Snapshot, Written,
};
use hyperfleet_fleet_model::unit::DesiredState;

use super::{World, body, in_every_store};

in_every_store! {
    a_snapshot_of_more_than_one_part_has_everything
    a_unit_is_created_once
    of_two_creators_one_succeeds
    generations_count_changes
    what_changes_nothing_writes_nothing
    a_stale_read_does_not_change_a_unit
    of_replace_and_destroy_one_wins
    the_same_write_changes_the_machines_order
    a_destroyed_unit_leaves_nothing
    a_unit_for_all_machines_is_placed_on_none
    unreadable_records_are_not_changed
    names_that_would_be_other_keys_are_refused
    units_that_are_too_large_are_refused;
    own
}

async fn a_snapshot_of_more_than_one_part_has_everything<S: KeyStore>(world: World<S>) {
    let count = LISTED_MAX + 5;
    for number in 0..count {
        world.create(&format!("a{number:04}.service")).await;
    }
    let snapshot = world.registry.snapshot().await.unwrap();
    assert_eq!(
        (snapshot.bodies.len(), snapshot.desired.len()),
        (count, count)
    );
}

async fn a_unit_is_created_once<S: KeyStore>(world: World<S>) {
    assert_eq!(world.registry.find_unit("a.service").await.unwrap(), None);
    let unit = world.create("a.service").await;
    assert_eq!(unit.body.value, body("1"));
    assert_eq!(unit.desired.value.generation, 1);
    assert_eq!(unit.desired.value.state, DesiredState::Launched);
    assert_eq!(unit.body.revision, unit.desired.revision, "one transaction");
    let again = world.create_as("a.service", "2", DesiredState::Loaded);
    assert_eq!(again.await.unwrap(), Written::Stale);
    assert_eq!(world.find("a.service").await, unit);
}

async fn of_two_creators_one_succeeds<S: KeyStore>(world: World<S>) {
    for round in 0..20 {
        let name = format!("a{round}.service");
        let (one, two) = (body("1"), body("2"));
        let (one, two) = tokio::join!(
            world
                .registry
                .create_unit(&name, &one, DesiredState::Inactive, None),
            world
                .registry
                .create_unit(&name, &two, DesiredState::Launched, None),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one == Written::Stale, two == Written::Stale);
        let unit = world.find(&name).await;
        let expected = if two == Written::Stale {
            (body("1"), DesiredState::Inactive)
        } else {
            (body("2"), DesiredState::Launched)
        };
        assert_eq!((unit.body.value, unit.desired.value.state), expected);
    }
}

async fn generations_count_changes<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let unit = world.create("a.service").await;
    let loaded = registry.set_desired_state(&unit, DesiredState::Loaded);
    assert!(matches!(loaded.await.unwrap(), Written::At(_)));
    let unit = world.find("a.service").await;
    assert_eq!(
        (unit.desired.value.generation, unit.desired.value.state),
        (2, DesiredState::Loaded)
    );
    let replaced = world.replace(&unit, "2", DesiredState::Inactive);
    let Written::At(revision) = replaced.await.unwrap() else {
        panic!("nobody else writes");
    };
    let unit = world.find("a.service").await;
    assert_eq!(
        (unit.desired.value.generation, unit.desired.value.state),
        (3, DesiredState::Inactive)
    );
    assert_eq!(unit.body.value, body("2"));
    assert_eq!(
        (unit.body.revision, unit.desired.revision),
        (revision, revision)
    );
}

async fn what_changes_nothing_writes_nothing<S: KeyStore>(world: World<S>) {
    let unit = world.create("a.service").await;
    let same = world
        .registry
        .set_desired_state(&unit, DesiredState::Launched);
    assert_eq!(same.await.unwrap(), Written::At(unit.desired.revision));
    let same = world.replace(&unit, "1", DesiredState::Launched);
    assert_eq!(same.await.unwrap(), Written::At(unit.desired.revision));
    assert_eq!(world.find("a.service").await, unit);
}

async fn a_stale_read_does_not_change_a_unit<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let old = world.create("a.service").await;
    registry
        .set_desired_state(&old, DesiredState::Loaded)
        .await
        .unwrap();
    let now = world.find("a.service").await;
    let replaced = world.replace(&old, "2", DesiredState::Launched);
    assert_eq!(replaced.await.unwrap(), Written::Stale);
    let set = registry.set_desired_state(&old, DesiredState::Inactive);
    assert_eq!(set.await.unwrap(), Written::Stale);
    assert_eq!(registry.destroy_unit(&old).await.unwrap(), Written::Stale);
    assert_eq!(world.find("a.service").await, now);
}

async fn of_replace_and_destroy_one_wins<S: KeyStore>(world: World<S>) {
    for round in 0..20 {
        let unit = world.create(&format!("a{round}.service")).await;
        let new = body("2");
        let (replaced, destroyed) = tokio::join!(
            world
                .registry
                .replace_unit(&unit, &new, DesiredState::Launched, None),
            world.registry.destroy_unit(&unit),
        );
        let left = world.registry.find_unit(&unit.name).await.unwrap();
        match (replaced.unwrap(), destroyed.unwrap()) {
            (Written::At(_), Written::Stale) => assert_eq!(left.unwrap().body.value, body("2")),
            (Written::Stale, Written::At(_)) => assert_eq!(left, None),
            other => panic!("{other:?}"),
        }
    }
}

async fn the_same_write_changes_the_machines_order<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let unit = world.create("a.service").await;
    world.place(&leading, &unit, "m1").await;
    let unit = world.find("a.service").await;
    assert_eq!(unit.placement.as_ref().unwrap().value.epoch, leading.epoch);
    let text = |hash: &str, state: &str| {
        let epoch = leading.epoch;
        format!(r#"{{"v":1,"hash":"{hash}","state":"{state}","epoch":{epoch}}}"#)
    };
    let run = world.get("run/m1/a.service").await.unwrap();
    assert_eq!(run, text("hash-of-1", "launched"));
    let inactive = world
        .registry
        .set_desired_state(&unit, DesiredState::Inactive);
    inactive.await.unwrap();
    let run = world.get("run/m1/a.service").await.unwrap();
    assert_eq!(run, text("hash-of-1", "inactive"));
    let unit = world.find("a.service").await;
    let replaced = world.replace(&unit, "2", DesiredState::Loaded);
    replaced.await.unwrap();
    let run = world.get("run/m1/a.service").await.unwrap();
    assert_eq!(run, text("hash-of-2", "loaded"));
}

async fn a_destroyed_unit_leaves_nothing<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let unit = world.create("a.service").await;
    world.place(&leading, &unit, "m1").await;
    let unit = world.find("a.service").await;
    let destroyed = world.registry.destroy_unit(&unit).await.unwrap();
    assert!(matches!(destroyed, Written::At(_)));
    let mut left = world.registry.snapshot().await.unwrap();
    assert!(left.leader.take().is_some());
    left.revision = 0;
    assert_eq!(left, Snapshot::default());
    // A new unit of the same name is a different one.
    let again = world.create("a.service").await;
    assert!(again.body.created > unit.body.created);
    assert_eq!((again.desired.value.generation, again.placement), (1, None));
}

async fn a_unit_for_all_machines_is_placed_on_none<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let unit = world.create("a.service").await;
    world.place(&leading, &unit, "m1").await;
    let unit = world.find("a.service").await;
    let global = Body {
        global: Some(GlobalRule {
            conflicts: vec!["b*".into()],
            ..GlobalRule::default()
        }),
        ..body("2")
    };
    let replaced = world
        .registry
        .replace_unit(&unit, &global, DesiredState::Launched, None);
    assert!(matches!(replaced.await.unwrap(), Written::At(_)));
    assert_eq!(world.get("run/m1/a.service").await, None);
    let copy = r#"{"v":1,"hash":"hash-of-2","state":"launched","conflicts":["b*"]}"#;
    assert_eq!(world.get("global/a.service").await.unwrap(), copy);
    let unit = world.find("a.service").await;
    assert_eq!(unit.placement, None);
    // The desired state is in the copy, too; and an ordinary unit has none.
    world
        .registry
        .set_desired_state(&unit, DesiredState::Loaded)
        .await
        .unwrap();
    assert!(
        world
            .get("global/a.service")
            .await
            .unwrap()
            .contains("loaded")
    );
    let unit = world.find("a.service").await;
    let ordinary = world.replace(&unit, "3", DesiredState::Loaded);
    ordinary.await.unwrap();
    assert_eq!(world.get("global/a.service").await, None);
}

async fn unreadable_records_are_not_changed<S: KeyStore>(world: World<S>) {
    let newer = r#"{"v":2,"wanted":"maybe"}"#;
    let unit = world.create("a.service").await;
    world.put("want/a.service", newer).await;
    let found = world.registry.find_unit("a.service").await;
    assert!(
        matches!(
            found,
            Err(Error::Unreadable {
                version: Some(2),
                ..
            })
        ),
        "{found:?}"
    );
    let set = world
        .registry
        .set_desired_state(&unit, DesiredState::Inactive);
    assert_eq!(set.await.unwrap(), Written::Stale);
    assert_eq!(
        world.registry.destroy_unit(&unit).await.unwrap(),
        Written::Stale
    );
    world.create("c.service").await;
    world.put("global/c.service", newer).await;
    let found = world.registry.find_unit("c.service").await;
    assert!(matches!(found, Err(Error::Unreadable { .. })), "{found:?}");
    world.put("label/m1/zone", newer).await;
    let labels = [("disk".to_owned(), None), ("zone".to_owned(), None)].into();
    let set = world.registry.set_labels("m1", &labels).await;
    assert!(matches!(set, Err(Error::Unreadable { .. })), "{set:?}");
    assert_eq!(world.get("label/m1/disk").await, None);
    // Where a newer program has created a unit, ours creates none.
    world.put("unit/b.service", newer).await;
    let created = world.create_as("b.service", "1", DesiredState::Loaded);
    assert_eq!(created.await.unwrap(), Written::Stale);
    assert_eq!(world.get("want/a.service").await.as_deref(), Some(newer));
    assert_eq!(world.get("unit/b.service").await.as_deref(), Some(newer));
    let snapshot = world.registry.snapshot().await.unwrap();
    let page = snapshot.list_units(None, 10).unwrap();
    let listed: Vec<_> = page
        .items
        .iter()
        .map(|(unit, _)| unit.name.as_str())
        .collect();
    assert_eq!(listed, [""; 0]);
    assert!(snapshot.is_unreadable("a.service") && snapshot.is_unreadable("b.service"));
    assert!(snapshot.is_unreadable("c.service"));
    assert!(!snapshot.is_unreadable("d.service"));
    assert_eq!(snapshot.unreadable.len(), 4, "{:?}", snapshot.unreadable);
}

async fn names_that_would_be_other_keys_are_refused<S: KeyStore>(world: World<S>) {
    let long = "a".repeat(PART_BYTES_MAX + 1);
    for name in [
        "",
        "a/b.service",
        "../a",
        "a b",
        "a,m1",
        "a\0b",
        "ä.service",
        &long,
    ] {
        let created = world.create_as(name, "1", DesiredState::Loaded);
        assert!(
            matches!(created.await, Err(Error::Unusable { .. })),
            "{name}"
        );
        let found = world.registry.find_unit(name).await;
        assert!(matches!(found, Err(Error::Unusable { .. })), "{name}");
    }
    let longest = format!("{}.service", "a".repeat(PART_BYTES_MAX - 8));
    world.create(&longest).await;
    world.create(r"a:b_c\x2d@1.service").await;
}

async fn units_that_are_too_large_are_refused<S: KeyStore>(world: World<S>) {
    let mut large = body("1");
    large.options[0].value = "x".repeat(BODY_BYTES_MAX);
    let created = world
        .registry
        .create_unit("a.service", &large, DesiredState::Loaded, None);
    assert!(matches!(created.await, Err(Error::Unusable { .. })));
    let unit = world.create("a.service").await;
    let replaced = world
        .registry
        .replace_unit(&unit, &large, DesiredState::Loaded, None);
    assert!(matches!(replaced.await, Err(Error::Unusable { .. })));
    large.options[0].value = "x".repeat(BODY_BYTES_MAX - 200);
    let replaced = world
        .registry
        .replace_unit(&unit, &large, DesiredState::Loaded, None);
    assert!(matches!(replaced.await.unwrap(), Written::At(_)));
    assert_eq!(world.find("a.service").await.body.value, large);
}

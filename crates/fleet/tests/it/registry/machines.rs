//! Writes of agents.

use std::collections::BTreeMap;

use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{Error, LABELS_MAX, Registered, Reports, UnitState};

use super::{World, in_every_store, machine, state, strings};
use hyperfleet_testkit::until;

in_every_store! {
    a_machine_is_registered_once
    when_a_lease_runs_out_all_of_the_machine_is_gone
    a_machine_that_keeps_its_lease_stays
    a_registered_machine_can_change_its_description
    states_are_written_when_they_change
    the_states_of_more_units_than_fit_a_transaction_are_written
    what_was_set_hides_what_is_configured
    metadata_is_set_whole_or_not_at_all;
    own
}

fn states(pairs: &[(&str, &str)]) -> BTreeMap<String, UnitState> {
    let owned = |(unit, active): &(&str, &str)| ((*unit).to_owned(), state(active));
    pairs.iter().map(owned).collect()
}

async fn a_machine_is_registered_once<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let registration = world.register("m1", 60).await;
    let again = registry
        .register_machine("m1", &machine(&[]), 60)
        .await
        .unwrap();
    assert_eq!(again, Registered::Taken);
    let known = registry.find_machine("m1").await.unwrap().unwrap();
    assert_eq!(known.machine.value, machine(&[("zone", "east")]));
    registry.deregister_machine(registration).await.unwrap();
    assert_eq!(registry.find_machine("m1").await.unwrap(), None);
    world.register("m1", 60).await;
    let bad = registry.register_machine("m/1", &machine(&[]), 60).await;
    assert!(matches!(bad, Err(Error::Unusable { .. })));
}

async fn when_a_lease_runs_out_all_of_the_machine_is_gone<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let registration = world.register("m1", 2).await;
    let mut reports = Reports::new(registration.clone());
    reports
        .publish(registry, &states(&[("a.service", "active")]))
        .await
        .unwrap();
    let other = world.register("m2", 60).await;
    let mut others = Reports::new(other);
    others
        .publish(registry, &states(&[("a.service", "active")]))
        .await
        .unwrap();
    until("the lease has run out", async || {
        registry.find_machine("m1").await.unwrap().is_none()
    })
    .await;
    let left = registry.snapshot().await.unwrap().states.into_keys();
    let left: Vec<_> = left.map(|key| key.machine).collect();
    assert_eq!(left, ["m2"]);
    for (machine, units) in [("m1", vec![]), ("m2", vec!["a.service"])] {
        assert_eq!(registry.reported_by(machine).await.unwrap(), units);
    }
    // No further write uses the lease.
    let kept = registry.renew_machine(&registration).await;
    assert!(matches!(kept, Err(Error::Unregistered)), "{kept:?}");
    let updated = registry.update_machine(&registration, &machine(&[])).await;
    assert!(matches!(updated, Err(Error::Unregistered)), "{updated:?}");
    let published = reports
        .publish(registry, &states(&[("a.service", "failed")]))
        .await;
    assert!(
        matches!(published, Err(Error::Unregistered)),
        "{published:?}"
    );
    // Nor by the old agent once the machine is back.
    world.register("m1", 60).await;
    let published = reports
        .publish(registry, &states(&[("a.service", "failed")]))
        .await;
    assert!(
        matches!(published, Err(Error::Unregistered)),
        "{published:?}"
    );
    registry.deregister_machine(registration).await.unwrap();
    assert!(registry.find_machine("m1").await.unwrap().is_some());
}

async fn a_machine_that_keeps_its_lease_stays<S: KeyStore>(world: World<S>) {
    let kept = world.register("m1", 2).await;
    let lost = world.register("m2", 2).await;
    until("the lease of the other has run out", async || {
        world.registry.renew_machine(&kept).await.unwrap();
        world.registry.find_machine("m2").await.unwrap().is_none()
    })
    .await;
    assert!(world.registry.find_machine("m1").await.unwrap().is_some());
    let gone = world.registry.renew_machine(&lost).await;
    assert!(matches!(gone, Err(Error::Unregistered)), "{gone:?}");
}

async fn a_registered_machine_can_change_its_description<S: KeyStore>(world: World<S>) {
    let registration = world.register("m1", 60).await;
    let new = machine(&[("zone", "west")]);
    world
        .registry
        .update_machine(&registration, &new)
        .await
        .unwrap();
    let known = world.registry.find_machine("m1").await.unwrap().unwrap();
    assert_eq!(known.machine.value, new);
    // It is still on the lease.
    world
        .registry
        .deregister_machine(registration)
        .await
        .unwrap();
    assert_eq!(world.get("machine/m1").await, None);
}

async fn states_are_written_when_they_change<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let mut reports = Reports::new(world.register("m1", 60).await);
    let first = states(&[("a.service", "active"), ("b.service", "active")]);
    assert_eq!(reports.publish(registry, &first).await.unwrap(), 2);
    let before = world.get("state/a.service,m1").await;
    assert_eq!(reports.publish(registry, &first).await.unwrap(), 0);
    let second = states(&[("b.service", "failed")]);
    assert_eq!(reports.publish(registry, &second).await.unwrap(), 2);
    assert!(before.is_some());
    assert_eq!(world.get("state/a.service,m1").await, None);
    assert!(
        world
            .get("state/b.service,m1")
            .await
            .unwrap()
            .contains("failed")
    );
    assert_eq!(reports.publish(registry, &second).await.unwrap(), 0);
}

async fn the_states_of_more_units_than_fit_a_transaction_are_written<S: KeyStore>(world: World<S>) {
    let mut reports = Reports::new(world.register("m1", 60).await);
    let many = (0..300).map(|n| (format!("a{n}.service"), state("active")));
    let many: BTreeMap<_, _> = many.collect();
    assert_eq!(reports.publish(&world.registry, &many).await.unwrap(), 300);
    assert_eq!(world.registry.snapshot().await.unwrap().states.len(), 300);
    assert_eq!(
        reports
            .publish(&world.registry, &BTreeMap::new())
            .await
            .unwrap(),
        300
    );
    assert_eq!(world.registry.snapshot().await.unwrap().states.len(), 0);
}

async fn what_was_set_hides_what_is_configured<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let registration = world.register("m1", 60).await;
    let metadata = async || registry.find_machine("m1").await.unwrap().unwrap().metadata;
    let set = async |key: &str, value: Option<&str>| {
        let labels = BTreeMap::from([(key.to_owned(), value.map(ToOwned::to_owned))]);
        registry.set_labels("m1", &labels).await.unwrap();
    };
    set("disk", Some("ssd")).await;
    set("zone", Some("west")).await;
    assert_eq!(
        metadata().await,
        strings(&[("disk", "ssd"), ("zone", "west")])
    );
    set("zone", None).await;
    assert_eq!(metadata().await, strings(&[("disk", "ssd")]));
    let snapshot = registry.snapshot().await.unwrap();
    assert_eq!(snapshot.metadata("m1"), strings(&[("disk", "ssd")]));
    assert_eq!(
        world.get("label/m1/zone").await.as_deref(),
        Some(r#"{"v":1,"value":null}"#)
    );
    // It outlives the machine.
    registry.deregister_machine(registration).await.unwrap();
    world.register("m1", 60).await;
    assert_eq!(metadata().await, strings(&[("disk", "ssd")]));
    // A machine whose id has the same beginning is another one.
    world.register("m", 60).await;
    assert_eq!(
        registry.snapshot().await.unwrap().metadata("m"),
        strings(&[("zone", "east")])
    );
}

async fn metadata_is_set_whole_or_not_at_all<S: KeyStore>(world: World<S>) {
    let long = "x".repeat(5000);
    for (key, value) in [("a/b", "1"), ("", "1"), ("a b", "1"), ("a", &long)] {
        let labels = [
            ("good".to_owned(), None),
            (key.to_owned(), Some(value.to_owned())),
        ];
        let set = world.registry.set_labels("m1", &labels.into()).await;
        assert!(matches!(set, Err(Error::Unusable { .. })), "{key}");
    }
    let many = |count| (0..count).map(|n| (format!("a{n}"), Some("1".to_owned())));
    let most = many(LABELS_MAX).collect();
    world.registry.set_labels("m1", &most).await.unwrap();
    let more = many(LABELS_MAX + 1).collect();
    assert!(world.registry.set_labels("m1", &more).await.is_err());
    world
        .registry
        .set_labels("m1", &BTreeMap::new())
        .await
        .unwrap();
    assert_eq!(
        world.registry.snapshot().await.unwrap().labels.len(),
        LABELS_MAX
    );
}

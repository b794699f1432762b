//! Writes of engines, and who may make them.

use std::collections::BTreeSet;

use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{Acquired, EngineGate, Error, MoveOrder, Step, Written};
use hyperfleet_fleet_model::unit::DesiredState;

use super::{World, in_every_store, leader};
use hyperfleet_testkit::{move_from_lost, move_to, place, until, withdraw};

in_every_store! {
    one_engine_leads_at_a_time
    of_two_candidates_one_leads
    after_a_resignation_another_leads_at_once
    a_leader_that_does_not_keep_its_lease_is_deposed
    a_deposed_leader_changes_nothing
    an_older_engine_is_put_out_of_its_term
    under_an_unreadable_leader_no_other_engine_leads
    the_gate_closes_behind_newer_engines
    a_unit_is_placed_once
    what_was_decided_on_an_old_want_is_not_done
    a_unit_is_moved_in_one_transaction
    units_leave_a_lost_machine_only_while_it_is_not_registered
    batches_of_any_size_are_carried_out
    one_stale_step_holds_up_no_other
    steps_about_one_unit_follow_each_other
    reasons_of_an_earlier_version_are_removed_by_the_leader;
    own
}

async fn one_engine_leads_at_a_time<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let leading = world.lead("m1").await;
    let other = registry
        .acquire_leadership(&leader("m2", 1), 60)
        .await
        .unwrap();
    assert_eq!(other, Acquired::Standby(leader("m1", 1)));
    registry.renew_leadership(&leading).await.unwrap();
    let found = registry.find_leader().await.unwrap().unwrap();
    assert_eq!(
        (found.value, found.created),
        (leader("m1", 1), leading.epoch)
    );
}

async fn of_two_candidates_one_leads<S: KeyStore>(world: World<S>) {
    let mut epoch = 0;
    for _ in 0..20 {
        let (one, two) = (leader("m1", 1), leader("m2", 1));
        let (one, two) = tokio::join!(
            world.registry.acquire_leadership(&one, 60),
            world.registry.acquire_leadership(&two, 60),
        );
        match (one.unwrap(), two.unwrap()) {
            (Acquired::Leading(leading), Acquired::Standby(_))
            | (Acquired::Standby(_), Acquired::Leading(leading)) => {
                assert!(leading.epoch > epoch, "epochs grow");
                epoch = leading.epoch;
                world.registry.resign(leading).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn after_a_resignation_another_leads_at_once<S: KeyStore>(world: World<S>) {
    let first = world.lead("m1").await;
    world.registry.resign(first.clone()).await.unwrap();
    let second = world.lead("m2").await;
    assert!(second.epoch > first.epoch);
    let kept = world.registry.renew_leadership(&first).await;
    assert!(matches!(kept, Err(Error::Deposed)), "{kept:?}");
    // Resigning twice does not affect the current leader.
    world.registry.resign(first).await.unwrap();
    world.registry.renew_leadership(&second).await.unwrap();
}

async fn a_leader_that_does_not_keep_its_lease_is_deposed<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let short = registry
        .acquire_leadership(&leader("m1", 1), 2)
        .await
        .unwrap();
    let Acquired::Leading(short) = short else {
        panic!("nobody else leads");
    };
    until("the lease has run out", async || {
        registry.find_leader().await.unwrap().is_none()
    })
    .await;
    let kept = registry.renew_leadership(&short).await;
    assert!(matches!(kept, Err(Error::Deposed)), "{kept:?}");
}

async fn a_deposed_leader_changes_nothing<S: KeyStore>(world: World<S>) {
    let unit = world.create("a.service").await;
    let placed = world.create("b.service").await;
    let old = world.lead("m1").await;
    world.place(&old, &placed, "m1").await;
    let placed = world.find("b.service").await;
    world.registry.resign(old.clone()).await.unwrap();
    let before = world.registry.snapshot().await.unwrap();
    let try_all = async || {
        let steps = [
            place(&unit, "m1"),
            withdraw(&placed),
            Step::Unmove {
                unit: "a.service".into(),
                order: 1,
            },
        ];
        for step in steps {
            let carried = world.registry.carry_out(&old, &[step]).await;
            assert!(matches!(carried, Err(Error::Deposed)), "{carried:?}");
        }
    };
    try_all().await;
    // Nor when the same machine leads again.
    let new = world.lead("m1").await;
    try_all().await;
    let after = world.registry.snapshot().await.unwrap();
    assert_eq!(
        (after.placements, after.runs),
        (before.placements, before.runs)
    );
    world.place(&new, &unit, "m1").await;
}

async fn an_older_engine_is_put_out_of_its_term<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    let old = world.lead("m1").await;
    let newer = registry
        .acquire_leadership(&leader("m2", 2), 60)
        .await
        .unwrap();
    let Acquired::Leading(newer) = newer else {
        panic!("a newer engine leads");
    };
    let kept = registry.renew_leadership(&old).await;
    assert!(matches!(kept, Err(Error::Deposed)), "{kept:?}");
    registry.renew_leadership(&newer).await.unwrap();
    let again = registry
        .acquire_leadership(&leader("m1", 1), 60)
        .await
        .unwrap();
    assert_eq!(again, Acquired::Standby(leader("m2", 2)));
}

async fn under_an_unreadable_leader_no_other_engine_leads<S: KeyStore>(world: World<S>) {
    world.put("engine/leader", r#"{"v":2,"name":"m9"}"#).await;
    let acquired = world
        .registry
        .acquire_leadership(&leader("m1", 9), 60)
        .await;
    assert!(
        matches!(acquired, Err(Error::Unreadable { .. })),
        "{acquired:?}"
    );
}

async fn the_gate_closes_behind_newer_engines<S: KeyStore>(world: World<S>) {
    let registry = &world.registry;
    assert_eq!(registry.pass_gate(1).await.unwrap(), EngineGate::Open);
    assert_eq!(registry.pass_gate(1).await.unwrap(), EngineGate::Open);
    assert_eq!(registry.pass_gate(2).await.unwrap(), EngineGate::Open);
    assert_eq!(
        registry.pass_gate(1).await.unwrap(),
        EngineGate::Closed { version: 2 }
    );
    assert_eq!(
        world.get("engine/version").await.unwrap(),
        r#"{"v":1,"version":2}"#
    );
    world.put("engine/version", r#"{"v":2}"#).await;
    let passed = registry.pass_gate(3).await;
    assert!(
        matches!(passed, Err(Error::Unreadable { .. })),
        "{passed:?}"
    );
}

async fn a_unit_is_placed_once<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let unit = world.create("a.service").await;
    world.place(&leading, &unit, "m1").await;
    let again = [place(&unit, "m2")];
    let carried = world.registry.carry_out(&leading, &again).await.unwrap();
    assert_eq!(carried, [Written::Stale]);
    let placed = world.find("a.service").await;
    assert_eq!(placed.placement.as_ref().unwrap().value.machine, "m1");
    let steps = [withdraw(&placed), withdraw(&placed)];
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    assert!(
        matches!(carried[..], [Written::At(_), Written::Stale]),
        "{carried:?}"
    );
    assert_eq!(world.get("run/m1/a.service").await, None);
    let bad = world
        .registry
        .carry_out(&leading, &[place(&unit, "m/1")])
        .await;
    assert!(matches!(bad, Err(Error::Unusable { .. })));
}

async fn what_was_decided_on_an_old_want_is_not_done<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let old = world.create("a.service").await;
    world
        .registry
        .set_desired_state(&old, DesiredState::Inactive)
        .await
        .unwrap();
    let carried = world
        .registry
        .carry_out(&leading, &[place(&old, "m1")])
        .await
        .unwrap();
    assert_eq!(carried, [Written::Stale]);
    let unit = world.find("a.service").await;
    world.registry.destroy_unit(&unit).await.unwrap();
    let carried = world
        .registry
        .carry_out(&leading, &[place(&unit, "m1")])
        .await
        .unwrap();
    assert_eq!(carried, [Written::Stale]);
    assert!(
        world
            .registry
            .snapshot()
            .await
            .unwrap()
            .placements
            .is_empty()
    );
    // Its user's change may allow it to stay, and its agent has the new order.
    let unit = world.create("b.service").await;
    world.place(&leading, &unit, "m1").await;
    let placed = world.find("b.service").await;
    world
        .registry
        .set_desired_state(&placed, DesiredState::Inactive)
        .await
        .unwrap();
    let steps = [withdraw(&placed)];
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    assert_eq!(carried, [Written::Stale]);
    assert!(world.get("run/m1/b.service").await.is_some());
    let steps = [withdraw(&world.find("b.service").await)];
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    assert!(matches!(carried[..], [Written::At(_)]), "{carried:?}");
}

async fn a_unit_is_moved_in_one_transaction<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let unit = world.create("a.service").await;
    world.place(&leading, &unit, "m1").await;
    let placed = world.find("a.service").await;
    let step = move_to(&placed, "m2");
    let steps = [step.clone(), step];
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    let [Written::At(revision), Written::Stale] = carried[..] else {
        panic!("{carried:?}");
    };
    let moved = world.find("a.service").await.placement.unwrap();
    assert_eq!(
        (moved.value.machine.as_str(), moved.revision),
        ("m2", revision)
    );
    assert_eq!(world.get("run/m1/a.service").await, None);
    assert!(world.get("run/m2/a.service").await.is_some());
}

/// Many units of several machines, in as few transactions as the store allows.
async fn units_leave_a_lost_machine_only_while_it_is_not_registered<S: KeyStore>(world: World<S>) {
    const MACHINES: usize = 7;
    let leading = world.lead("e").await;
    let mut steps = Vec::new();
    for number in 0..150 {
        let unit = world.create(&format!("a{number}.service")).await;
        steps.push(place(&unit, &format!("m{}", number % MACHINES)));
    }
    world.registry.carry_out(&leading, &steps).await.unwrap();
    for returned in ["m3", "m5"] {
        world.register(returned, 60).await;
    }
    let mut steps = Vec::new();
    for number in 0..150 {
        let unit = world.find(&format!("a{number}.service")).await;
        steps.push(move_from_lost(&unit, "m9"));
    }
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    let mut revisions = BTreeSet::new();
    for (number, carried) in carried.iter().enumerate() {
        let has_returned = [3, 5].contains(&(number % MACHINES));
        match carried {
            Written::At(revision) => _ = revisions.insert(*revision),
            Written::Stale => assert!(has_returned, "{number}"),
        }
        let unit = world.find(&format!("a{number}.service")).await;
        let now = unit.placement.unwrap().value.machine;
        let expected = if has_returned {
            format!("m{}", number % MACHINES)
        } else {
            "m9".to_owned()
        };
        assert_eq!(now, expected, "{number}");
    }
    let count = revisions.len();
    assert_eq!(count, 5, "four comparisons each, and one of each machine");
    // A move for another reason needs no absence.
    let unit = world.find("a3.service").await;
    let steps = [move_to(&unit, "m9")];
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    assert!(matches!(carried[..], [Written::At(_)]), "{carried:?}");
}

async fn batches_of_any_size_are_carried_out<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let mut steps = Vec::new();
    for number in 0..150 {
        let unit = world.create(&format!("a{number}.service")).await;
        steps.push(place(&unit, &format!("m{}", number % 7)));
    }
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    assert!(
        carried.iter().all(|c| matches!(c, Written::At(_))),
        "{carried:?}"
    );
    let mut revisions: Vec<_> = carried
        .iter()
        .filter_map(|c| match c {
            Written::At(revision) => Some(*revision),
            Written::Stale => None,
        })
        .collect();
    assert!(revisions.is_sorted(), "in their order");
    revisions.dedup();
    assert_eq!(
        revisions.len(),
        4,
        "three operations each, 128 a transaction"
    );
    let snapshot = world.registry.snapshot().await.unwrap();
    assert_eq!((snapshot.placements.len(), snapshot.runs.len()), (150, 150));
    assert_eq!(world.registry.carry_out(&leading, &[]).await.unwrap(), []);
}

async fn one_stale_step_holds_up_no_other<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let mut steps = Vec::new();
    for number in 0..10 {
        let unit = world.create(&format!("a{number}.service")).await;
        if number % 3 == 0 {
            world.registry.destroy_unit(&unit).await.unwrap();
        }
        steps.push(place(&unit, "m1"));
    }
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    let stale: Vec<_> = (0..10).filter(|n| carried[*n] == Written::Stale).collect();
    assert_eq!(stale, [0, 3, 6, 9]);
    assert_eq!(world.registry.snapshot().await.unwrap().placements.len(), 6);
}

async fn steps_about_one_unit_follow_each_other<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let unit = world.create("a.service").await;
    let order = MoveOrder {
        from: "m2".into(),
        to: "m1".into(),
    };
    let orders = [("a.service".to_owned(), order)].into();
    let unmove = Step::Unmove {
        unit: "a.service".into(),
        order: world.registry.order_moves(&orders).await.unwrap(),
    };
    let steps = [unmove, place(&unit, "m1")];
    let carried = world.registry.carry_out(&leading, &steps).await.unwrap();
    assert!(matches!(carried[..], [Written::At(first), Written::At(second)] if first < second));
}

async fn reasons_of_an_earlier_version_are_removed_by_the_leader<S: KeyStore>(world: World<S>) {
    let old = world.lead("m1").await;
    world.registry.resign(old.clone()).await.unwrap();
    let leading = world.lead("m2").await;
    for number in 0..150 {
        world.put(&format!("why/a{number}.service"), "{}").await;
    }
    // They are no records, and no unknown keys either.
    let snapshot = world.registry.snapshot().await.unwrap();
    assert!(snapshot.unreadable.is_empty() && snapshot.unknown.is_empty());
    let refused = world.registry.remove_reasons(&old).await;
    assert!(matches!(refused, Err(Error::Deposed)), "{refused:?}");
    assert!(world.get("why/a0.service").await.is_some());
    world.registry.remove_reasons(&leading).await.unwrap();
    for number in 0..150 {
        let left = world.get(&format!("why/a{number}.service")).await;
        assert_eq!(left, None, "{number}");
    }
    world.registry.remove_reasons(&leading).await.unwrap();
}

//! Lists and their pages.

use std::collections::BTreeMap;

use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{Error, LISTED_MAX, PageToken, Reports, StateFilter, UnitRecord};

use super::{World, in_every_store, state, strings};

in_every_store! {
    units_are_listed_by_name_at_one_revision
    units_come_with_what_their_machine_reports
    states_are_listed_by_unit_then_machine
    machines_come_with_their_metadata
    a_token_of_another_list_or_of_the_future_is_none
    a_whole_chunk_and_more_is_read_at_one_revision;
    own
    a_list_that_was_compacted_has_gone_stale
}

async fn names<S: KeyStore>(world: &World<S>, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut token) = (Vec::new(), None);
    loop {
        let page = world
            .registry
            .list_units(token.as_ref(), limit)
            .await
            .unwrap();
        pages.push(page.items.into_iter().map(|(unit, _)| unit.name).collect());
        token = match page.next {
            // As a client would send it back.
            Some(next) => Some(PageToken::parse(&next.text()).unwrap()),
            None => return pages,
        };
    }
}

async fn units_are_listed_by_name_at_one_revision<S: KeyStore>(world: World<S>) {
    assert_eq!(names(&world, 2).await, [Vec::<String>::new()]);
    for name in ["b.service", "a@1.service", "a.service", "a-b.service"] {
        world.create(name).await;
    }
    let all = [
        vec!["a-b.service", "a.service"],
        vec!["a@1.service", "b.service"],
    ];
    assert_eq!(
        names(&world, 2).await,
        all,
        "a page that is just full is the last"
    );
    let first = world.registry.list_units(None, 2).await.unwrap();
    let token = first.next.unwrap();
    // The rest of the list does not change.
    let last = world.find("b.service").await;
    world.registry.destroy_unit(&last).await.unwrap();
    world.create("a0.service").await;
    world.create("zz.service").await;
    let second = world.registry.list_units(Some(&token), 2).await.unwrap();
    let second_names: Vec<_> = second.items.iter().map(|(unit, _)| &unit.name).collect();
    assert_eq!(second_names, ["a@1.service", "b.service"]);
    assert_eq!((second.revision, second.next), (first.revision, None));
    assert_eq!(names(&world, 3).await.concat().len(), 5);
    assert_eq!(names(&world, 0).await.len(), 5, "a page holds one at least");
}

async fn units_come_with_what_their_machine_reports<S: KeyStore>(world: World<S>) {
    let leading = world.lead("m1").await;
    let mut reports = Reports::new(world.register("m1", 60).await);
    for name in ["a.service", "b.service"] {
        let unit = world.create(name).await;
        world.place(&leading, &unit, "m1").await;
    }
    world.create("c.service").await;
    let current = BTreeMap::from([
        ("b.service".to_owned(), state("active")),
        ("c.service".to_owned(), state("active")), // still there, but not placed
    ]);
    reports.publish(&world.registry, &current).await.unwrap();
    let page = world.registry.list_units(None, 10).await.unwrap();
    let seen =
        |(unit, state): &(UnitRecord, Option<_>)| (unit.placement.is_some(), state.is_some());
    let seen: Vec<_> = page.items.iter().map(seen).collect();
    assert_eq!(seen, [(true, false), (true, true), (false, false)]);
}

async fn states_are_listed_by_unit_then_machine<S: KeyStore>(world: World<S>) {
    let units = ["a.service", "a-b.service", "a.service-x.service"];
    for id in ["m2", "m1"] {
        let mut reports = Reports::new(world.register(id, 60).await);
        let current = units.map(|unit| (unit.to_owned(), state("active")));
        reports
            .publish(&world.registry, &current.into())
            .await
            .unwrap();
    }
    let list = async |filter: StateFilter, limit| {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let page = world
                .registry
                .list_states(&filter, token.as_ref(), limit)
                .await
                .unwrap();
            assert!(page.items.len() <= limit);
            all.extend(
                page.items
                    .into_iter()
                    .map(|(key, _)| format!("{} {}", key.unit, key.machine)),
            );
            match page.next {
                Some(next) => token = Some(PageToken::parse(&next.text()).unwrap()),
                None => return all,
            }
        }
    };
    let whole = list(StateFilter::default(), 100).await;
    let expected = [
        "a-b.service m1",
        "a-b.service m2",
        "a.service m1",
        "a.service m2",
        "a.service-x.service m1",
        "a.service-x.service m2",
    ];
    assert_eq!(whole, expected);
    assert_eq!(list(StateFilter::default(), 1).await, expected);
    let unit = Some("a.service".to_owned());
    let machine = Some("m2".to_owned());
    let of_unit = StateFilter {
        unit: unit.clone(),
        machine: None,
    };
    assert_eq!(list(of_unit, 1).await, &expected[2..4]);
    let of_machine = StateFilter {
        unit: None,
        machine: machine.clone(),
    };
    assert_eq!(
        list(of_machine, 2).await,
        [expected[1], expected[3], expected[5]]
    );
    assert_eq!(list(StateFilter { unit, machine }, 5).await, [expected[3]]);
    let nobody = StateFilter {
        unit: None,
        machine: Some("m".to_owned()),
    };
    assert!(list(nobody, 5).await.is_empty());
}

async fn machines_come_with_their_metadata<S: KeyStore>(world: World<S>) {
    for id in ["m1", "m2", "m3"] {
        world.register(id, 60).await;
    }
    let labels = BTreeMap::from([
        ("zone".to_owned(), None),
        ("disk".to_owned(), Some("ssd".to_owned())),
    ]);
    world.registry.set_labels("m2", &labels).await.unwrap();
    world
        .registry
        .set_labels("elsewhere", &labels)
        .await
        .unwrap();
    let first = world.registry.list_machines(None, 2).await.unwrap();
    let second = world
        .registry
        .list_machines(first.next.as_ref(), 2)
        .await
        .unwrap();
    let machines = [first.items, second.items].concat();
    let seen: Vec<_> = machines.into_iter().map(|m| (m.id, m.metadata)).collect();
    let metadata = [strings(&[("zone", "east")]), strings(&[("disk", "ssd")])];
    let expected =
        [("m1", 0), ("m2", 1), ("m3", 0)].map(|(id, i)| (id.to_owned(), metadata[i].clone()));
    assert_eq!(seen, expected);
    assert_eq!(second.next, None);
}

async fn a_token_of_another_list_or_of_the_future_is_none<S: KeyStore>(world: World<S>) {
    for name in ["a.service", "b.service"] {
        world.create(name).await;
    }
    let token = world
        .registry
        .list_units(None, 1)
        .await
        .unwrap()
        .next
        .unwrap();
    let machines = world.registry.list_machines(Some(&token), 1).await;
    assert!(matches!(machines, Err(Error::Token)), "{machines:?}");
    let states = world
        .registry
        .list_states(&StateFilter::default(), Some(&token), 1)
        .await;
    assert!(matches!(states, Err(Error::Token)), "{states:?}");
    // Forged by a client: "u", revision 2^62, "a".
    let future = PageToken::parse("AXVAAAAAAAAAAGE").unwrap();
    let units = world.registry.list_units(Some(&future), 1).await;
    assert!(matches!(units, Err(Error::Token)), "{units:?}");
}

async fn a_whole_chunk_and_more_is_read_at_one_revision<S: KeyStore>(world: World<S>) {
    let count = LISTED_MAX + 5;
    for number in 0..count {
        world.create(&format!("a{number:04}.service")).await;
    }
    let snapshot = world.registry.snapshot().await.unwrap();
    assert_eq!(
        (snapshot.bodies.len(), snapshot.desired.len()),
        (count, count)
    );
    let pages = names(&world, usize::MAX).await;
    let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [LISTED_MAX, 5]);
}

async fn a_list_that_was_compacted_has_gone_stale<S: KeyStore>(world: World<S>) {
    for name in ["a.service", "b.service"] {
        world.create(name).await;
    }
    let token = world
        .registry
        .list_units(None, 1)
        .await
        .unwrap()
        .next
        .unwrap();
    world.create("c.service").await;
    let newest = world.create("d.service").await.desired.revision;
    world.compact(newest).await;
    let stale = world.registry.list_units(Some(&token), 1).await;
    assert!(matches!(stale, Err(Error::Compacted)), "{stale:?}");
    assert_eq!(names(&world, 1).await.len(), 4);
}

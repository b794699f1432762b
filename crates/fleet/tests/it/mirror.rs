//! Lists from memory: the same as what is in etcd, and current.

use std::time::{Duration, Instant};

use hyperfleet_fleet::keys::{KeyStore, Revision};
use hyperfleet_fleet::registry::{Leading, Reports};
use hyperfleet_fleet::{Error, Fleet, StateFilter};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_testkit::MemoryKeys;
use rustix::process::Signal;

use super::mirrored::{Mirrored, all, compact, everything, on, on_shared, request, state};
use hyperfleet_testkit::{Random, TestEtcd, fresh_prefix, until};

/// Few, so that random choices repeat.
const UNITS: usize = 12;
const SLEEP: &str = "ExecStart=/bin/sleep 1";

fn name(number: usize) -> String {
    format!("u{number:02}.service")
}

async fn names<S: KeyStore>(
    fleet: &Fleet<S>,
    token: Option<&str>,
) -> (Vec<String>, Option<String>) {
    let page = fleet.list_units(token).await.unwrap();
    let next = page.token();
    let names = page.items.into_iter().map(|unit| unit.name);
    (names.collect(), next)
}

#[tokio::test]
async fn a_token_is_for_the_list_that_gave_it() {
    let world = on_shared().await;
    let mut reports = Reports::new(world.register("m1", &[]).await);
    for number in 0..4 {
        world.create(&name(number), &[SLEEP], "").await;
    }
    let names: Vec<_> = (0..4).map(name).collect();
    let states: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), state("active", true)))
        .collect();
    world.report(&mut reports, &states).await;
    world.settle().await;
    let everything = StateFilter::default();
    let units = world.fleet.list_units(None).await.unwrap().token().unwrap();
    let states = world
        .fleet
        .list_states(&everything, None)
        .await
        .unwrap()
        .token()
        .unwrap();
    let other = StateFilter {
        unit: Some(name(7)),
        machine: None,
    };
    let fleet = &world.fleet;
    for wrong in ["", "ZAABAA==", "!", &states] {
        let list = fleet.list_units(Some(wrong)).await;
        assert!(matches!(list, Err(Error::Token)), "{wrong}: {list:?}");
        let list = fleet.list_machines(Some(wrong)).await;
        assert!(matches!(list, Err(Error::Token)), "{wrong}: {list:?}");
    }
    let list = fleet.list_states(&everything, Some(&units)).await;
    assert!(matches!(list, Err(Error::Token)), "{list:?}");
    let list = fleet.list_states(&other, Some(&states)).await;
    assert!(matches!(list, Err(Error::Token)), "{list:?}");
}

#[tokio::test]
async fn a_writer_reads_its_own_writes() {
    let world = on_shared().await;
    for number in 0..50 {
        let name = format!("a{number:03}.service");
        world.create(&name, &[SLEEP], "loaded").await;
        let listed = all(async |token| world.fleet.list_units(token).await).await;
        assert_eq!(listed.last().unwrap().name, name);
        world.set_desired(&name, "launched").await;
        let listed = all(async |token| world.fleet.list_units(token).await).await;
        assert_eq!(listed.last().unwrap().desired, DesiredState::Launched);
        if number % 3 == 0 {
            world.fleet.destroy_unit(&name).await.unwrap();
            let listed = all(async |token| world.fleet.list_units(token).await).await;
            assert!(listed.iter().all(|unit| unit.name != name));
        }
    }
}

#[tokio::test]
async fn a_list_has_once_what_exists_all_the_time() {
    let world = on_shared().await;
    for number in [1, 3, 5, 7, 9] {
        world.create(&name(number), &[SLEEP], "").await;
    }
    let (first, token) = names(&world.fleet, None).await;
    assert_eq!(first, [name(1), name(3), name(5)]);
    world.create(&name(0), &[SLEEP], "").await;
    world.create(&name(8), &[SLEEP], "").await;
    // Also the unit that the token names.
    for gone in [5, 7] {
        world.fleet.destroy_unit(&name(gone)).await.unwrap();
    }
    // Here and on another server.
    let beside = world.beside().await;
    for fleet in [&world.fleet, &beside.fleet] {
        let (second, end) = names(fleet, token.as_deref()).await;
        assert_eq!((second, end), (vec![name(8), name(9)], None));
        assert_eq!(names(fleet, None).await.0, [name(0), name(1), name(3)]);
    }
}

#[tokio::test]
async fn a_list_goes_on_whatever_etcd_has_forgotten() {
    let server = TestEtcd::start().await;
    let world = on(&server).await;
    for number in 0..4 {
        world.create(&name(number), &[SLEEP], "").await;
    }
    let (_, token) = names(&world.fleet, None).await;
    world.create("zz.service", &[SLEEP], "").await;
    let last = world.put("x", "y").await;
    compact(&server, last).await;
    let (second, end) = names(&world.fleet, token.as_deref()).await;
    assert_eq!(
        (second, end),
        (vec![name(3), "zz.service".to_owned()], None)
    );
}

/// A random change.
pub(crate) async fn happen<S: KeyStore>(
    world: &Mirrored<S>,
    random: &mut Random,
    leading: &Leading,
    reports: &mut [Reports],
) {
    let unit = name(random.below(UNITS));
    let desired = random.pick(&["inactive", "loaded", "launched"]);
    let desired_key = format!("want/{unit}");
    let Ok(known) = world.registry.find_unit(&unit).await else {
        let ours = format!(r#"{{"v":1,"state":"{desired}","generation":7}}"#);
        world.put(&desired_key, &ours).await;
        return;
    };
    match (random.below(9), known) {
        (0, Some(_)) => world.fleet.destroy_unit(&unit).await.unwrap(),
        (1, Some(known)) if known.placement.is_some() => world.withdraw(leading, &unit).await,
        (2 | 3, Some(known)) if known.placement.is_none() && known.body.value.global.is_none() => {
            let machine = format!("m{}", random.below(reports.len()));
            world.place(leading, &unit, &machine).await;
        }
        (4, _) => {
            let index = random.below(reports.len());
            let names: Vec<_> = (0..UNITS)
                .filter(|_| random.below(2) == 0)
                .map(name)
                .collect();
            let state = state(random.pick(&["active", "failed"]), random.below(2) == 0);
            let states = names.iter().map(|name| (name.as_str(), state.clone()));
            let states: Vec<_> = states.collect();
            world.report(&mut reports[index], &states).await;
        }
        // A newer version writes.
        (5, Some(_)) if random.below(4) == 0 => {
            world.put(&desired_key, r#"{"v":2}"#).await;
        }
        (6, Some(_)) => world.set_desired(&unit, desired).await,
        (7, _) => {
            let lines = ["Global=true", "MachineMetadata=zone=a"];
            world
                .fleet
                .set_unit(&unit, request(&lines, desired))
                .await
                .unwrap();
        }
        _ => {
            let line = format!("ExecStart=/bin/sleep {}", random.below(1000));
            world
                .fleet
                .set_unit(&unit, request(&[&line], desired))
                .await
                .unwrap();
        }
    }
}

pub(crate) async fn agents<S: KeyStore>(world: &Mirrored<S>) -> Vec<Reports> {
    let mut reports = Vec::new();
    for id in ["m0", "m1", "m2"] {
        reports.push(Reports::new(world.register(id, &[("zone", "a")]).await));
    }
    reports
}

#[tokio::test]
async fn whatever_happens_the_mirror_is_what_is_there() {
    for seed in 0..20 {
        let store = MemoryKeys::new();
        let world = Mirrored::start(store.clone(), fresh_prefix()).await;
        let mut random = Random::seeded(seed);
        let leading = world.lead("m0").await;
        let mut agents = agents(&world).await;
        for _ in 0..200 {
            happen(&world, &mut random, &leading, &mut agents).await;
            if random.below(20) == 0 {
                world.settle().await;
            }
            // The keeper must list again what it has not seen yet.
            if random.below(40) == 0 {
                store.compact(Revision::MAX);
            }
        }
        world.settle().await;
        let snapshot = world.registry.snapshot().await.unwrap();
        for machine in ["m0", "m1", "m2"] {
            let filter = StateFilter {
                unit: None,
                machine: Some(machine.to_owned()),
            };
            let here = all(async |token| world.fleet.list_states(&filter, token).await).await;
            let here: Vec<_> = here.into_iter().map(|state| state.unit).collect();
            let there = snapshot.states.keys().filter(|key| key.machine == machine);
            let there: Vec<_> = there.map(|key| key.unit.clone()).collect();
            assert_eq!(here, there, "{machine}, seed {seed}");
        }
        let beside = world.beside().await;
        let (here, there) = (
            everything(&world.fleet).await,
            everything(&beside.fleet).await,
        );
        assert_eq!(
            here, there,
            "one that comes later says the same: seed {seed}"
        );
        assert!(
            !here.units.is_empty() && !here.states.is_empty(),
            "seed {seed}"
        );
    }
}

#[tokio::test]
async fn what_is_gone_while_etcd_is_away_is_gone() {
    let mut server = TestEtcd::start().await;
    let world = on(&server).await;
    for number in 0..4 {
        world.create(&name(number), &[SLEEP], "loaded").await;
    }
    world.settle().await;
    server.kill();
    until("it is noticed", async || !world.fleet.is_connected()).await;
    let listed = world.fleet.list_units(None).await.unwrap_err();
    assert!(matches!(listed, Error::Unavailable(_)), "{listed:?}");
    assert_eq!(
        listed.to_string(),
        "fleet server unable to communicate with etcd"
    );
    let set = world.fleet.set_unit(&name(9), request(&[SLEEP], "")).await;
    assert!(matches!(set, Err(Error::Unavailable(_))), "{set:?}");
    server.resume().await;
    // Another server is faster, and the history of its writes is compacted.
    let beside = on(&server).await;
    let beside = Mirrored::start(beside.store.clone(), world.prefix.clone()).await;
    beside.fleet.destroy_unit(&name(1)).await.unwrap();
    beside.create("zz.service", &[SLEEP], "").await;
    let newest = beside.put("zz", "").await;
    compact(&server, newest).await;
    until("it is connected again", async || world.fleet.is_connected()).await;
    world.settle().await;
    let listed = all(async |token| world.fleet.list_units(token).await).await;
    let listed: Vec<_> = listed.into_iter().map(|unit| unit.name).collect();
    assert_eq!(listed, [&name(0), &name(2), &name(3), "zz.service"]);
}

#[tokio::test]
async fn a_server_that_falls_silent_is_noticed_in_time() {
    let server = TestEtcd::start().await;
    let world = on(&server).await;
    world.create("a.service", &[SLEEP], "loaded").await;
    world.settle().await;
    server.signal(Signal::STOP);
    let since = Instant::now();
    assert_eq!(names(&world.fleet, None).await.0, ["a.service"]);
    assert!(since.elapsed() < Duration::from_secs(2), "out of memory");
    until("it is noticed", async || !world.fleet.is_connected()).await;
    // Ten seconds of silence, and five for the probe. The rest is for a busy machine.
    assert!(
        since.elapsed() < Duration::from_secs(25),
        "{:?}",
        since.elapsed()
    );
    server.signal(Signal::CONT);
    until("it is connected again", async || world.fleet.is_connected()).await;
    world.create("b.service", &[SLEEP], "loaded").await;
    world.settle().await;
    assert_eq!(names(&world.fleet, None).await.0.len(), 2);
}

#[tokio::test]
async fn a_mirror_that_is_not_kept_is_not_connected() {
    let mut world = on_shared().await;
    world.create("a.service", &[SLEEP], "").await;
    world.stop();
    until("it is not", async || !world.fleet.is_connected()).await;
    world.create("b.service", &[SLEEP], "").await;
    let listed = world.fleet.list_units(None).await;
    assert!(
        matches!(listed, Err(Error::Unavailable(None))),
        "{listed:?}"
    );
    let follow = world.fleet.follow_units(None).await;
    assert!(matches!(follow, Err(Error::Unavailable(None))));
    world.keep().await;
    assert_eq!(names(&world.fleet, None).await.0.len(), 2);
}

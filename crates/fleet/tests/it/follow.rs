//! Followers end up with the current state, whatever happens in between.

use std::collections::BTreeMap;
use std::time::Duration;

use hyperfleet_fleet::keys::{KeyStore, Revision};
use hyperfleet_fleet::registry::Reports;
use hyperfleet_fleet::{
    Error, Fleet, FollowUpdate, Followed, Follower, Item, StateFilter, StateKey, StateView,
    UnitView,
};
use hyperfleet_testkit::MemoryKeys;

use super::mirror::{agents, happen};
use super::mirrored::{Mirrored, all, compact, everything, on, on_shared, state};
use hyperfleet_testkit::{PATIENCE, Random, TestEtcd, fresh_prefix};

const SLEEP: &str = "ExecStart=/bin/sleep 1";

/// A following client, and the state that it has received.
struct Client<S: KeyStore, T: Followed> {
    follow: Follower<S, T>,
    picture: BTreeMap<T::Key, T>,
    /// The revision to resume after.
    at: Option<Revision>,
    key: fn(&T) -> T::Key,
}

fn unit_key(unit: &UnitView) -> String {
    unit.name.clone()
}

fn state_key(state: &StateView) -> StateKey {
    StateKey {
        unit: state.unit.clone(),
        machine: state.machine.clone(),
    }
}

async fn units<S: KeyStore>(world: &Mirrored<S>, after: Option<Revision>) -> Client<S, UnitView> {
    Client {
        follow: world.fleet.follow_units(after).await.unwrap(),
        picture: BTreeMap::new(),
        at: after,
        key: unit_key,
    }
}

async fn states<S: KeyStore>(
    world: &Mirrored<S>,
    filter: StateFilter,
    after: Option<Revision>,
) -> Client<S, StateView> {
    Client {
        follow: world.fleet.follow_states(filter, after).await.unwrap(),
        picture: BTreeMap::new(),
        at: after,
        key: state_key,
    }
}

impl<S: KeyStore, T: Followed> Client<S, T> {
    /// Applies the next update.
    async fn next(&mut self) -> FollowUpdate<T>
    where
        T: Clone,
    {
        let told = tokio::time::timeout(PATIENCE, self.follow.next()).await;
        let told = told.expect("news arrive in time").unwrap();
        self.take(told.clone());
        told
    }

    fn take(&mut self, told: FollowUpdate<T>) {
        match told {
            FollowUpdate::Listed { revision, items } => {
                let items = items.into_iter().map(|item| ((self.key)(&item), item));
                self.picture.extend(items);
                self.at = revision;
            }
            FollowUpdate::Changed { revision, items } => {
                if let Some(revision) = revision {
                    assert!(self.at.is_some_and(|at| at < revision));
                    self.at = Some(revision);
                }
                for item in items {
                    match item {
                        Item::Is(item) => {
                            self.picture.insert((self.key)(&item), item);
                        }
                        Item::Gone(key) => {
                            self.picture.remove(&key);
                        }
                    }
                }
            }
        }
    }

    /// Applies updates until there are none.
    async fn until_quiet(&mut self) {
        while let Ok(told) =
            tokio::time::timeout(Duration::from_millis(300), self.follow.next()).await
        {
            self.take(told.unwrap());
        }
    }

    /// Follows until its state is the expected one.
    async fn until_it_is(&mut self, expected: &[T])
    where
        T: Clone + PartialEq + std::fmt::Debug,
    {
        let is = |picture: &BTreeMap<T::Key, T>| picture.values().eq(expected);
        while !is(&self.picture) {
            let told = tokio::time::timeout(PATIENCE, self.follow.next()).await;
            match told {
                Ok(told) => self.take(told.unwrap()),
                Err(_) => assert_eq!(self.picture.values().cloned().collect::<Vec<_>>(), expected),
            }
        }
    }
}

#[tokio::test]
async fn everything_comes_first_and_then_what_changes() {
    let world = on_shared().await;
    world.create("a.service", &[SLEEP], "loaded").await;
    world.create("b.service", &[SLEEP], "loaded").await;
    world.settle().await;
    let mut client = units(&world, None).await;
    let FollowUpdate::Listed {
        revision: Some(_),
        items,
    } = client.next().await
    else {
        panic!("two are one part, and the last");
    };
    assert_eq!(items.len(), 2);
    world.set_desired("a.service", "launched").await;
    let FollowUpdate::Changed { items, .. } = client.next().await else {
        panic!("it was listed");
    };
    let a = world.fleet.find_unit("a.service").await.unwrap();
    assert_eq!(items, [Item::Is(a)], "and of the others nothing");
    world.fleet.destroy_unit("b.service").await.unwrap();
    let FollowUpdate::Changed { items, .. } = client.next().await else {
        panic!("it was listed");
    };
    assert_eq!(items, [Item::Gone("b.service".to_owned())]);
}

#[tokio::test]
async fn changes_that_users_cannot_see_are_not_sent() {
    let world = on_shared().await;
    let leading = world.lead("m1").await;
    let mut here = Reports::new(world.register("m1", &[]).await);
    let mut there = Reports::new(world.register("m2", &[]).await);
    world.create("a.service", &[SLEEP], "loaded").await;
    world.place(&leading, "a.service", "m1").await;
    world
        .report(&mut here, &[("a.service", state("active", true))])
        .await;
    world.settle().await;
    let mut client = units(&world, None).await;
    client.next().await;
    // Another machine's state, and a changed sub state on its own machine.
    world
        .report(&mut there, &[("a.service", state("active", false))])
        .await;
    world
        .report(&mut here, &[("a.service", state("failed", true))])
        .await;
    world.create("b.service", &[SLEEP], "").await;
    let FollowUpdate::Changed { items, .. } = client.next().await else {
        panic!("it was listed");
    };
    let b = world.fleet.find_unit("b.service").await.unwrap();
    assert_eq!(items, [Item::Is(b)]);
    // A report that changes the unit.
    world
        .report(&mut here, &[("a.service", state("failed", false))])
        .await;
    let FollowUpdate::Changed { items, .. } = client.next().await else {
        panic!("it was listed");
    };
    let a = world.fleet.find_unit("a.service").await.unwrap();
    assert_eq!(items, [Item::Is(a)]);
}

#[tokio::test]
async fn states_are_followed_by_the_filter_of_lists() {
    let world = on_shared().await;
    let mut here = Reports::new(world.register("m1", &[]).await);
    let mut there = Reports::new(world.register("m2", &[]).await);
    world
        .report(&mut here, &[("a.service", state("active", true))])
        .await;
    world.settle().await;
    let of_m1 = StateFilter {
        unit: Some(String::new()),
        machine: Some("m1".to_owned()),
    };
    let mut client = states(&world, of_m1, None).await;
    let FollowUpdate::Listed { items, .. } = client.next().await else {
        panic!("everything comes first");
    };
    assert_eq!(items.len(), 1);
    world
        .report(&mut there, &[("a.service", state("active", true))])
        .await;
    world.report(&mut here, &[]).await;
    let FollowUpdate::Changed { items, .. } = client.next().await else {
        panic!("it was listed");
    };
    let key = StateKey {
        unit: "a.service".to_owned(),
        machine: "m1".to_owned(),
    };
    assert_eq!(items, [Item::Gone(key)]);
}

#[tokio::test]
async fn a_client_goes_on_where_it_was_on_any_server() {
    let mut world = on_shared().await;
    world.create("a.service", &[SLEEP], "loaded").await;
    world.create("b.service", &[SLEEP], "loaded").await;
    world.settle().await;
    let mut client = units(&world, None).await;
    client.next().await;
    let picture = client.picture.clone();
    world.fleet.destroy_unit("a.service").await.unwrap();
    world.set_desired("b.service", "launched").await;
    world.create("c.service", &[SLEEP], "").await;
    let expected = all(async |token| world.fleet.list_units(token).await).await;
    // On the same server; on one that was started later and does not remember; on one that starts again.
    let beside = world.beside().await;
    for world in [&world, &beside] {
        let mut again = units(world, client.at).await;
        again.picture = picture.clone();
        again.until_it_is(&expected).await;
        let at = again.at.unwrap();
        // Nothing is repeated, and new changes arrive.
        again.until_quiet().await;
        assert_eq!(again.at, Some(at));
        world.create(&format!("{at}-d.service"), &[SLEEP], "").await;
        assert!(
            matches!(again.next().await, FollowUpdate::Changed { items, .. } if items.len() == 1)
        );
        world
            .fleet
            .destroy_unit(&format!("{at}-d.service"))
            .await
            .unwrap();
        again.until_it_is(&expected).await;
    }
    world.stop();
    world.keep().await;
    let mut again = units(&world, client.at).await;
    again.picture = picture;
    again.until_it_is(&expected).await;
}

#[tokio::test]
async fn a_resuming_client_waits_for_a_server_that_is_behind() {
    let world = Mirrored::start(MemoryKeys::new(), fresh_prefix()).await;
    world.create("a.service", &[SLEEP], "inactive").await;
    let before = world.registry.newest().await.unwrap();
    world.set_desired("a.service", "loaded").await;
    let beside = world.beside().await;
    let mut client = units(&beside, Some(before)).await;
    // The keeper shares the thread: it sees this later than the history.
    world.set_desired("a.service", "launched").await;
    let expected = vec![world.fleet.find_unit("a.service").await.unwrap()];
    client.until_it_is(&expected).await;
}

#[tokio::test]
async fn what_was_compacted_or_has_not_come_is_not_gone_on_from() {
    let server = TestEtcd::start().await;
    let world = on(&server).await;
    let first = world.put("x", "1").await;
    world.create("a.service", &[SLEEP], "loaded").await;
    let last = world.put("x", "2").await;
    compact(&server, last).await;
    let beside = world.beside().await;
    // One remembers, the other would have to ask.
    assert!(world.fleet.follow_units(Some(first)).await.is_ok());
    let stale = beside.fleet.follow_units(Some(first)).await.err();
    assert!(matches!(stale, Some(Error::Stale)), "{stale:?}");
    for (after, what) in [(last + 100, "later than any"), (0, "none"), (-1, "none")] {
        let error = world.fleet.follow_units(Some(after)).await.err().unwrap();
        let expected = if after > 0 {
            matches!(&error, Error::Invalid(text) if text.contains("has not come yet"))
        } else {
            matches!(error, Error::Invalid(_) | Error::Stale)
        };
        assert!(expected, "{what}: {error:?}");
    }
    // Writes of others on the same server may be newer than the mirror.
    let elsewhere = Mirrored::start(world.store.clone(), fresh_prefix()).await;
    let newest = elsewhere.put("x", "y").await;
    let mut client = units(&world, Some(newest)).await;
    world.create("b.service", &[SLEEP], "loaded").await;
    assert!(matches!(client.next().await, FollowUpdate::Changed { items, .. } if items.len() == 1));
}

#[tokio::test]
async fn a_follower_that_is_given_up_half_way_loses_nothing() {
    let world = on_shared().await;
    let mut client = units(&world, None).await;
    client.next().await;
    for number in 0..30 {
        let given_up =
            tokio::time::timeout(Duration::from_micros(number * 50), client.follow.next());
        if let Ok(told) = given_up.await {
            client.take(told.unwrap());
        }
        world
            .create(&format!("u{number:02}.service"), &[SLEEP], "")
            .await;
    }
    let expected = all(async |token| world.fleet.list_units(token).await).await;
    client.until_it_is(&expected).await;
}

#[tokio::test]
async fn many_are_listed_in_parts_and_change_meanwhile() {
    let world = Mirrored::start(MemoryKeys::new(), fresh_prefix()).await;
    let name = |number: usize| format!("u{number:04}.service");
    for number in 0..600 {
        world.create(&name(number), &[SLEEP], "").await;
    }
    world.settle().await;
    let mut client = units(&world, None).await;
    let FollowUpdate::Listed {
        revision: None,
        items,
    } = client.next().await
    else {
        panic!("it is not all of them");
    };
    assert!(items.len() < 500, "{}", items.len());
    // One that was delivered, one that is still to come, one in between.
    world.fleet.destroy_unit(&name(0)).await.unwrap();
    world.fleet.destroy_unit(&name(599)).await.unwrap();
    world.set_desired(&name(1), "launched").await;
    world.create("u0500-more.service", &[SLEEP], "").await;
    let expected = all(async |token| world.fleet.list_units(token).await).await;
    client.until_it_is(&expected).await;
    assert!(client.at.is_some());
}

#[tokio::test]
async fn followers_receive_what_a_new_list_changed() {
    let store = MemoryKeys::new();
    let world = Mirrored::start(store.clone(), fresh_prefix()).await;
    let mut reports = Reports::new(world.register("m1", &[]).await);
    for name in ["a.service", "b.service", "c.service"] {
        world.create(name, &[SLEEP], "loaded").await;
    }
    world
        .report(&mut reports, &[("a.service", state("active", true))])
        .await;
    world.settle().await;
    let mut client = units(&world, None).await;
    let mut reported = states(&world, StateFilter::default(), None).await;
    client.next().await;
    reported.next().await;
    // The keeper shares the thread: before it looks, all of this has happened and is forgotten.
    world.fleet.destroy_unit("a.service").await.unwrap();
    world.set_desired("b.service", "launched").await;
    world.create("d.service", &[SLEEP], "").await;
    world
        .report(&mut reports, &[("d.service", state("active", true))])
        .await;
    store.compact(Revision::MAX);
    let FollowUpdate::Changed { items, .. } = client.next().await else {
        panic!("it was listed");
    };
    let expected = everything(&world.beside().await.fleet).await;
    assert_eq!(items.len(), 3, "what is as it was is not told: {items:?}");
    client.until_it_is(&expected.units).await;
    reported.until_it_is(&expected.states).await;
}

/// More than is kept in memory.
const MANY: usize = 70_000;

#[tokio::test]
async fn a_follower_catches_up_from_the_history() {
    let store = MemoryKeys::new();
    let world = Mirrored::start(store.clone(), fresh_prefix()).await;
    let mut reports = Reports::new(world.register("m1", &[]).await);
    world.create("a.service", &[SLEEP], "loaded").await;
    world.settle().await;
    let filter = StateFilter::default();
    let mut away = states(&world, filter.clone(), None).await;
    let mut too_long = units(&world, None).await;
    away.next().await;
    too_long.next().await;
    let name = |number: usize| format!("u{number:05}.service");
    let names: Vec<_> = (0..MANY).map(name).collect();
    let report = |active: &'static str| {
        let states = names
            .iter()
            .map(|name| (name.as_str(), state(active, true)));
        states.collect::<Vec<_>>()
    };
    world.report(&mut reports, &report("active")).await;
    let expected = all_states(&world).await;
    assert_eq!(expected.len(), MANY);
    away.until_it_is(&expected).await;
    // From there it resumes from memory.
    let at = away.at;
    world.report(&mut reports, &report("active")[1..]).await;
    assert!(matches!(away.next().await, FollowUpdate::Changed { items, .. } if items.len() == 1));
    assert!(away.at > at);
    // A follower that would have to ask for forgotten history must start over.
    world.report(&mut reports, &report("failed")).await;
    let page = world.fleet.list_states(&filter, None).await.unwrap();
    assert_eq!(
        page.items[0].active, "active",
        "the keeper has not looked yet"
    );
    hyperfleet_testkit::until("it has", async || {
        let page = world.fleet.list_states(&filter, None).await.unwrap();
        page.items[0].active == "failed"
    })
    .await;
    store.compact(Revision::MAX);
    let stale = too_long.follow.next().await.unwrap_err();
    assert!(matches!(stale, Error::Stale), "{stale:?}");
}

async fn all_states<S: KeyStore>(world: &Mirrored<S>) -> Vec<StateView> {
    let fleet = Fleet::new(world.registry.clone(), 256);
    let mirror = tokio::spawn(fleet.clone().run_mirror());
    hyperfleet_testkit::until("the mirror is connected", async || fleet.is_connected()).await;
    let filter = StateFilter::default();
    let states = all(async |token| fleet.list_states(&filter, token).await).await;
    mirror.abort();
    states
}

/// Clients that are fast, slow, or resume, while much happens.
async fn follow_a_life<S: KeyStore>(world: &Mirrored<S>, seed: u64) {
    let mut random = Random::seeded(seed);
    let leading = world.lead("m0").await;
    let mut agents = agents(world).await;
    let beside = world.beside().await;
    let all_states = StateFilter::default();
    let mut fast = units(world, None).await;
    let mut slow = units(&beside, None).await;
    let mut reported = states(world, all_states.clone(), None).await;
    for step in 0..150 {
        happen(world, &mut random, &leading, &mut agents).await;
        while let Ok(told) =
            tokio::time::timeout(Duration::from_millis(1), fast.follow.next()).await
        {
            fast.take(told.unwrap());
        }
        if step % 50 == 10 {
            reported.until_quiet().await;
            // It loses its connection, and resumes at another server.
            let at = reported.at;
            let picture = reported.picture;
            reported = states(&beside, all_states.clone(), at).await;
            reported.picture = picture;
        }
    }
    world.settle().await;
    let expected = everything(&world.fleet).await;
    fast.until_it_is(&expected.units).await;
    slow.until_it_is(&expected.units).await;
    reported.until_it_is(&expected.states).await;
}

#[tokio::test]
async fn followers_end_up_with_the_current_state() {
    for seed in 0..6 {
        let world = Mirrored::start(MemoryKeys::new(), fresh_prefix()).await;
        Box::pin(follow_a_life(&world, seed)).await;
    }
}

#[tokio::test]
async fn followers_end_up_with_the_contents_of_etcd() {
    let world = on_shared().await;
    Box::pin(follow_a_life(&world, 100)).await;
}

#[tokio::test]
async fn followers_outlive_a_server_that_is_killed() {
    let mut server = TestEtcd::start().await;
    let world = on(&server).await;
    world.create("a.service", &[SLEEP], "loaded").await;
    let mut client = units(&world, None).await;
    client.next().await;
    server.kill();
    let waits = tokio::time::timeout(Duration::from_millis(300), client.follow.next()).await;
    assert!(
        waits.is_err(),
        "it is not for a follower to fail: {waits:?}"
    );
    server.resume().await;
    hyperfleet_testkit::until("it is there again", async || world.fleet.is_connected()).await;
    world.create("b.service", &[SLEEP], "loaded").await;
    let expected = all(async |token| world.fleet.list_units(token).await).await;
    client.until_it_is(&expected).await;
}

/// Revisions are used a second time with another meaning.
#[tokio::test]
async fn followers_start_over_after_a_restore_of_etcd() {
    let world = Mirrored::start(MemoryKeys::new(), fresh_prefix()).await;
    world.create("a.service", &[SLEEP], "").await;
    let snapshot = world.store.restored();
    world.create("b.service", &[SLEEP], "").await;
    world.settle().await;
    let mut client = units(&world, None).await;
    client.next().await;
    world.store.become_as(&snapshot);
    let told = tokio::time::timeout(PATIENCE, client.follow.next()).await;
    assert!(matches!(told, Ok(Err(Error::Stale))), "{told:?}");
    let mut again = units(&world, None).await;
    again.next().await;
    assert_eq!(again.picture.into_keys().collect::<Vec<_>>(), ["a.service"]);
    world.create("c.service", &[SLEEP], "").await;
    assert!(world.fleet.list_units(None).await.is_ok());
}

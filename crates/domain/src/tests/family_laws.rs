//! Laws of parents and children, for any requests in any order.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::explain_laws::laws_of_explanations;
use super::laws::{
    assert_generations_moved, is_held_back, laws_of_the_outcome, laws_of_the_state,
    laws_of_the_step,
};
use super::world::{Ended, KINDS, Row, SOURCES, Says, TARGETS, World};
use crate::audit::Action;
use crate::lifecycle::{Outcome, RefusalReason};
use crate::{ConditionStatus, ResourceId};

/// One request. Its resource is picked among those that exist by then.
#[derive(Debug, Clone)]
enum Request {
    Create {
        kind: &'static str,
        owner: Index,
        target: Option<Index>,
    },
    Patch {
        whom: Index,
        spec: Option<u8>,
        target: Option<Index>,
    },
    Report {
        whom: Index,
        says: Says,
    },
    /// Every adapter reports that it has cleaned up a finalizing resource.
    Finalize {
        whom: Index,
    },
    Delete {
        whom: Index,
    },
    ForceDelete {
        whom: Index,
    },
}

fn request() -> impl Strategy<Value = Request> {
    let index = any::<Index>;
    let target = || option::weighted(0.3, index());
    let create =
        (select(&KINDS[..]), index(), target()).prop_map(|(kind, owner, target)| Request::Create {
            kind,
            owner,
            target,
        });
    let patch = (index(), option::of(0..2_u8), target())
        .prop_map(|(whom, spec, target)| Request::Patch { whom, spec, target });
    let report = (index(), says()).prop_map(|(whom, says)| Request::Report { whom, says });
    prop_oneof![
        8 => create,
        2 => patch,
        4 => report,
        4 => index().prop_map(|whom| Request::Finalize { whom }),
        4 => index().prop_map(|whom| Request::Delete { whom }),
        1 => index().prop_map(|whom| Request::ForceDelete { whom }),
    ]
}

fn says() -> impl Strategy<Value = Says> {
    use ConditionStatus::{False, True, Unknown};
    let status = || prop_oneof![6 => Just(True), 3 => Just(False), 1 => Just(Unknown)];
    let age = (
        prop_oneof![1 => Just(-1), 6 => Just(0), 1 => Just(1)],
        0..3_i64,
    );
    let said = (status(), option::of(status()), prop::bool::weighted(0.9));
    (select(&["a", "b", "z"][..]), age, said).prop_map(
        |(adapter, (ahead, seconds_ago), (available, finalized, is_complete))| Says {
            adapter,
            ahead,
            seconds_ago,
            available,
            finalized,
            is_complete,
        },
    )
}

/// One of the resources of these kinds, if there is any.
fn pick(world: &World, kinds: &[&str], index: Index) -> Option<ResourceId> {
    pick_where(
        world,
        |row| kinds.contains(&&*row.resource.state.kind),
        index,
    )
}

fn pick_where(world: &World, fits: impl Fn(&Row) -> bool, index: Index) -> Option<ResourceId> {
    let rows = world.rows.iter().filter(|(_, row)| fits(row));
    let ids: Vec<_> = rows.map(|(id, _)| *id).collect();
    (!ids.is_empty()).then(|| *index.get(&ids))
}

/// Carries a request out, checks every law, and returns how it ended; `None` if there is no resource for it yet.
fn step(world: &mut World, request: &Request) -> Option<Vec<Ended>> {
    world.second += 1;
    match *request {
        Request::Create {
            kind,
            owner,
            target,
        } => {
            let parent = world.registry.get(kind)?.parent.clone();
            let owner = match &parent {
                Some(parent) => Some(pick(world, &[parent], owner)?),
                // Few roots, so that trees grow.
                None if pick(world, &[kind], owner).is_some() && world.second % 4 > 0 => {
                    return None;
                }
                None => None,
            };
            let target = target.filter(|_| SOURCES.contains(&kind));
            let target = target.and_then(|index| pick(world, &TARGETS, index));
            let targets: Vec<_> = target.into_iter().collect();
            Some(vec![checked(world, |world| {
                world.create(kind, owner, &targets)
            })])
        }
        Request::Patch { whom, spec, target } => {
            let kinds = if target.is_some() {
                &SOURCES[..]
            } else {
                &KINDS
            };
            let id = pick(world, kinds, whom)?;
            let target = target.and_then(|index| pick(world, &TARGETS, index));
            let targets = target.map(|id| vec![id]);
            Some(vec![checked(world, |world| {
                world.patch(id, spec, targets.as_deref())
            })])
        }
        Request::Report { whom, ref says } => {
            let id = pick(world, &KINDS, whom)?;
            Some(vec![checked(world, |world| world.report(id, says))])
        }
        Request::Finalize { whom } => {
            let id = pick_where(world, |row| row.resource.state.is_finalizing(), whom)?;
            let ended = ["a", "b"].into_iter().map_while(|adapter| {
                world
                    .rows
                    .contains_key(&id)
                    .then(|| checked(world, |world| world.finalize(id, adapter)))
            });
            Some(ended.collect())
        }
        Request::Delete { whom } => {
            let id = pick(world, &KINDS, whom)?;
            let is_held_back = is_held_back(world, id);
            let ended = checked(world, |world| world.delete(id));
            let is_refused = matches!(ended, Ended::Refused(_));
            assert_eq!(is_refused, is_held_back, "{ended:?}");
            if matches!(ended, Ended::Deleted(_)) && world.rows.contains_key(&id) {
                let again = checked(world, |world| world.delete(id));
                assert_eq!(
                    again,
                    Ended::Deleted(Outcome::default()),
                    "it was deleted already"
                );
            }
            Some(vec![ended])
        }
        Request::ForceDelete { whom } => {
            let id = pick(world, &KINDS, whom)?;
            Some(vec![checked(world, |world| world.force_delete(id))])
        }
    }
}

fn checked(world: &mut World, request: impl FnOnce(&mut World) -> Ended) -> Ended {
    let before = world.rows.clone();
    let ended = request(world);
    laws_of_the_state(world);
    laws_of_explanations(world);
    laws_of_the_step(&before, &world.rows);
    match &ended {
        Ended::Dropped | Ended::Invalid | Ended::Refused(_) | Ended::Unchanged => {
            assert_eq!(world.rows, before, "{ended:?} changed something");
        }
        Ended::Created => assert_eq!(world.rows.len(), before.len() + 1),
        Ended::Patched => assert_generations_moved(&before, &world.rows, 1),
        Ended::Reported => assert_generations_moved(&before, &world.rows, 0),
        Ended::Deleted(outcome) | Ended::Completed(outcome) => {
            laws_of_the_outcome(&before, world, outcome);
            let forced = outcome
                .changes
                .iter()
                .any(|c| c.action == Action::ForceDelete);
            assert!(!forced, "nobody used force");
        }
        Ended::Forced(outcome) => laws_of_the_outcome(&before, world, outcome),
    }
    ended
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_order_of_requests_breaks_a_law(requests in vec(request(), 1..60)) {
        let mut world = World::new();
        for request in &requests {
            step(&mut world, request);
        }
    }
}

/// The laws prove little unless the random requests reach every end.
#[test]
fn the_random_requests_reach_every_end() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeMap::<&str, usize>::new();
    for _ in 0..64 {
        let requests = vec(request(), 60).new_tree(&mut runner);
        let mut world = World::new();
        for request in requests.expect("nothing is filtered").current() {
            for ended in step(&mut world, &request).into_iter().flatten() {
                *reached.entry(name(&ended)).or_default() += 1;
            }
        }
    }
    let expected = [
        "active children",
        "completed with owners",
        "completed without owners",
        "created",
        "deleted, all gone",
        "deleted, all waiting",
        "deleted, some gone",
        "dropped",
        "forced with more",
        "forced without owners",
        "invalid",
        "marked for deletion",
        "not finalizing",
        "patched",
        "referenced",
        "reported",
        "unchanged",
    ];
    assert_eq!(
        reached.keys().copied().collect::<Vec<_>>(),
        expected,
        "{reached:?}"
    );
}

fn name(ended: &Ended) -> &'static str {
    match ended {
        Ended::Created => "created",
        Ended::Patched => "patched",
        Ended::Unchanged => "unchanged",
        Ended::Reported => "reported",
        Ended::Dropped => "dropped",
        Ended::Invalid => "invalid",
        Ended::Deleted(o) if o.removed.is_empty() => "deleted, all waiting",
        Ended::Deleted(o) if o.saved.is_empty() => "deleted, all gone",
        Ended::Deleted(_) => "deleted, some gone",
        Ended::Completed(o) if o.removed.len() == 1 => "completed without owners",
        Ended::Completed(_) => "completed with owners",
        Ended::Forced(o) if o.removed.len() == 1 => "forced without owners",
        Ended::Forced(_) => "forced with more",
        Ended::Refused(refusal) => match refusal.reason {
            RefusalReason::MarkedForDeletion => "marked for deletion",
            RefusalReason::ActiveChildren { .. } => "active children",
            RefusalReason::Referenced { .. } => "referenced",
            RefusalReason::NotFinalizing => "not finalizing",
            RefusalReason::GenerationsExhausted => "generations exhausted",
        },
    }
}

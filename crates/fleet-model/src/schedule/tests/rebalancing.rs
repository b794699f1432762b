//! Moves that even out the load.

use proptest::prelude::*;

use super::given::{Seen, cluster, done, id, launched, machine, placed, see, unavailable, unit};
use super::plain::{Against, Plain};
use super::properties::state;
use crate::schedule::{Availability, Cluster, Move};

fn shown(moves: &[Move]) -> Vec<String> {
    let one = |m: &Move| format!("{} {}>{}", m.unit, m.from, m.to);
    moves.iter().map(one).collect()
}

/// `count` units on a machine, named after it.
fn units_on(machine: &str, count: usize) -> Vec<Seen> {
    let unit = |n| {
        let name = format!("{machine}{n}");
        [launched(&name, &[]), placed(&name, machine)]
    };
    (0..count).flat_map(unit).collect()
}

#[test]
fn units_go_from_the_most_loaded_machine_to_the_least_loaded() {
    let mut seen = vec![
        machine("alder", ""),
        machine("birch", ""),
        machine("cedar", ""),
    ];
    seen.extend(units_on("alder", 5));
    seen.extend(units_on("birch", 2));
    let mut cluster = cluster(seen);
    let (moves, after) = cluster.rebalance(10);
    assert_eq!(shown(&moves), ["alder0 alder>cedar", "alder1 alder>cedar"]);
    let after: Vec<_> = after.values().copied().collect();
    assert_eq!(after, [3, 2, 2]);
    // Limited, and only planned.
    assert_eq!(cluster.rebalance(1).0.len(), 1);
    let loads: Vec<_> = cluster.loads().values().copied().collect();
    assert_eq!(loads, [5, 2, 0]);
}

#[test]
fn what_must_not_move_stays() {
    let mut cluster = cluster([
        machine("alder", ""),
        machine("birch", ""),
        unavailable("cedar", "", Availability::Cordoned),
        launched("a", &["Singleton=true"]),
        launched("b", &[]),
        launched("c", &["MachineOf=b"]),
        launched("d", &["MachineID=alder"]),
        launched("everywhere", &["Global=true"]),
        placed("a", "alder"),
        placed("b", "alder"),
        placed("c", "alder"),
        placed("d", "alder"),
    ]);
    assert_eq!(shown(&cluster.rebalance(10).0), [""; 0]);
    see(&mut cluster, launched("e", &[]));
    see(&mut cluster, placed("e", "alder"));
    assert_eq!(shown(&cluster.rebalance(10).0), ["e alder>birch"]);
}

#[test]
fn a_move_that_is_no_longer_right_is_left_out() {
    let asked = |name: &str, from: &str, to: &str| Move {
        unit: unit(name),
        from: id(from),
        to: id(to),
    };
    let mut cluster = cluster([
        machine("alder", ""),
        machine("birch", ""),
        launched("a", &["Conflicts=b"]),
        launched("b", &[]),
        launched("c", &[]),
        placed("a", "alder"),
        placed("c", "alder"),
    ]);
    let moves = [
        asked("a", "alder", "birch"),
        // Not there; not valid after the one before; no such unit or machine.
        asked("c", "birch", "alder"),
        asked("nobody", "alder", "birch"),
        asked("c", "alder", "zelkova"),
        asked("c", "alder", "alder"),
        asked("c", "alder", "birch"),
    ];
    let units = |cluster: &mut Cluster, moves: &[Move]| -> Vec<String> {
        let tasks = cluster.carry_moves(moves);
        tasks.iter().map(|task| task.unit.to_string()).collect()
    };
    assert_eq!(units(&mut cluster, &moves), ["a", "c"]);
    see(&mut cluster, placed("b", "alder"));
    let both = [asked("c", "alder", "birch"), asked("b", "alder", "birch")];
    assert_eq!(units(&mut cluster, &both), ["c", "b"]);
    let excluded = [asked("b", "alder", "birch"), asked("a", "alder", "birch")];
    assert_eq!(units(&mut cluster, &excluded), ["b"]);
}

proptest! {
    #[test]
    fn moves_break_no_requirement_and_leave_less_to_balance(state in state(), most in 0_usize..9) {
        let mut state: Plain = state;
        let mut cluster = cluster(state.changes());
        for _ in 0..12 {
            for task in cluster.plan() {
                state.see(done(&task));
                see(&mut cluster, done(&task));
            }
        }
        let (moves, after) = cluster.rebalance(most);
        prop_assert!(moves.len() <= most);
        let tasks = cluster.carry_moves(&moves);
        prop_assert_eq!(tasks.len(), moves.len(), "each is right when it is carried out");
        let squares = |cluster: &Cluster| -> u64 {
            cluster.loads().values().map(|load| u64::from(*load).pow(2)).sum()
        };
        let before = squares(&cluster);
        let wrong = |state: &Plain| -> usize {
            state.jobs.values().filter(|job| state.against(job) != Against::Nothing).count()
        };
        let faults = wrong(&state);
        for task in &tasks {
            state.see(done(task));
            see(&mut cluster, done(task));
        }
        prop_assert_eq!(cluster.loads(), after);
        prop_assert!(wrong(&state) <= faults);
        // Global units may come and go where others have moved.
        let has_globals = state.jobs.values().any(|job| job.requirements.is_global);
        prop_assert!(has_globals || moves.is_empty() || squares(&cluster) < before);
    }
}

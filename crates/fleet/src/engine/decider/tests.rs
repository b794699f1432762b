//! Decisions step by step, and properties of every step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Agenda, Decider};
use crate::keys::Revision;
use crate::known_units;
use crate::mirror::Mirror;
use crate::registry::{
    Body, DesiredRecord, Drain, Key, KeyChange, Label, LabelKey, Leader, MachineRecord, Placement,
    Record, Snapshot, StateKey, Step, Stored,
};
use hyperfleet_fleet_model::schedule::{MachineId, Reason};
use hyperfleet_fleet_model::unit::{DesiredState, Requirements, UnitOption, unmet};

const EPOCH: Revision = 5;

/// A registry as the decider sees it, and the decider.
struct World {
    decider: Decider,
    mirror: Arc<Mirror>,
    revision: Revision,
    requirements: BTreeMap<String, Requirements>,
    metadata: BTreeMap<String, BTreeMap<String, String>>,
    placements: BTreeMap<String, String>,
}

impl World {
    fn new() -> Self {
        let mirror = Arc::<Mirror>::default();
        Self {
            decider: Decider::new(EPOCH, &mirror),
            mirror,
            revision: 10,
            requirements: BTreeMap::new(),
            metadata: BTreeMap::new(),
            placements: BTreeMap::new(),
        }
    }

    fn stored<T>(&mut self, value: T) -> Record<T> {
        self.revision += 1;
        Record::Present(Stored {
            value,
            created: self.revision,
            revision: self.revision,
        })
    }

    fn see(&mut self, change: KeyChange) {
        self.mirror.apply(self.revision, vec![change]);
        self.decider.apply_touched();
    }

    fn unit(&mut self, name: &str, lines: &[&str], state: DesiredState) {
        let lines = lines.iter().filter_map(|line| line.split_once('='));
        let options: Vec<_> = lines
            .map(|(option, value)| UnitOption::new("X-Fleet", option, value))
            .collect();
        let is_global = options.iter().any(|option| option.name == "Global");
        let body = Body {
            options,
            hash: "hash".into(),
            global: is_global.then(Default::default),
        };
        let asked = body.requirements(name);
        self.requirements.insert(name.to_owned(), asked);
        let body = self.stored(body);
        self.see(KeyChange::Unit(name.to_owned(), body));
        self.set_desired(name, state);
    }

    fn set_desired(&mut self, name: &str, state: DesiredState) {
        let generation = self.revision.unsigned_abs();
        let desired = self.stored(DesiredRecord {
            state,
            generation,
            restarts: 0,
        });
        self.see(KeyChange::Desired(name.to_owned(), desired));
    }

    fn launch(&mut self, name: &str, lines: &[&str]) {
        self.unit(name, lines, DesiredState::Launched);
    }

    fn machine(&mut self, id: &str, metadata: &[(&str, &str)]) {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let metadata: BTreeMap<_, _> = metadata.iter().map(owned).collect();
        self.metadata.insert(id.to_owned(), metadata.clone());
        let machine = self.stored(MachineRecord {
            metadata,
            ..MachineRecord::default()
        });
        self.see(KeyChange::Machine(id.to_owned(), machine));
    }

    fn lose(&mut self, id: &str) {
        self.metadata.remove(id);
        self.see(KeyChange::Machine(id.to_owned(), Record::Absent));
    }

    fn place(&mut self, unit: &str, machine: &str, epoch: Revision) {
        let placement = self.stored(Placement {
            machine: machine.to_owned(),
            hash: "hash".into(),
            epoch,
            moved: None,
        });
        self.placements.insert(unit.to_owned(), machine.to_owned());
        self.see(KeyChange::Placement(unit.to_owned(), placement));
    }

    /// Applies a step as the store would, and sends its events.
    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Planned { task, .. } => {
                let unit = task.unit.as_str();
                let from = task.from.as_ref().map(MachineId::as_str);
                let before = self.placements.remove(unit);
                assert_eq!(before.as_deref(), from, "{step:?}");
                match &task.to {
                    Some(machine) => self.place(unit, machine.as_str(), EPOCH),
                    None => self.see(KeyChange::Placement(unit.to_owned(), Record::Absent)),
                }
            }
            Step::Unmove { unit, .. } => self.see(KeyChange::Move(unit.clone(), Record::Absent)),
        }
    }

    /// Carries out everything and returns it, by portion, as `+unit@machine`, `-unit@machine`,
    /// `unit:from>machine`.
    fn settle(&mut self) -> Vec<Vec<String>> {
        let mut done = Vec::new();
        for _ in 0..20 {
            let mut agenda = self.decider.decide();
            if agenda.is_empty() {
                return done;
            }
            while !agenda.is_empty() {
                let portion = agenda.portion();
                done.push(portion.iter().map(shown).collect());
                for next in &portion {
                    self.carry_out(next);
                }
            }
        }
        panic!("it does not come to an end: {done:?}");
    }

    /// The reason that users see, from the mirror.
    fn explain(&self, unit: &str) -> String {
        let changes = self
            .mirror
            .read(|picture| known_units::changes(&picture.snapshot));
        let cluster = known_units::cluster(changes);
        cluster
            .explain(unit)
            .map_or_else(String::new, |why| why.to_string())
    }

    /// Pairs on one machine that exclude each other. Global units are not the engine's.
    fn crowded(&self) -> BTreeSet<(String, String)> {
        let pairs = self.placements.iter().flat_map(|(unit, on)| {
            let others = self.placements.iter();
            let others = others.filter(move |(other, there)| *there == on && *other != unit);
            others
                .filter(|(other, _)| self.requirements[unit].conflicts_with(other))
                .map(|(other, _)| (unit.clone(), other.clone()))
        });
        pairs.collect()
    }

    /// Whether a unit's own requirements hold on its machine.
    fn suits(&self, unit: &str) -> bool {
        let (asked, machine) = (&self.requirements[unit], &self.placements[unit]);
        let metadata = self.metadata.get(machine);
        let leads = |leader: &String| self.placements.get(leader) == Some(machine);
        metadata.is_some_and(|metadata| unmet(&asked.metadata, metadata).is_none())
            && asked.machine_of.iter().all(leads)
    }
}

fn shown(step: &Step) -> String {
    match step {
        Step::Planned { task, .. } => match (&task.from, &task.to) {
            (Some(from), Some(machine)) => format!("{}:{from}>{machine}", task.unit),
            (Some(from), None) => format!("-{}@{from}", task.unit),
            (None, machine) => format!("+{}@{}", task.unit, machine.as_ref().unwrap()),
        },
        Step::Unmove { unit, .. } => format!("?{unit}"),
    }
}

fn all(mut agenda: Agenda) -> Vec<String> {
    let mut steps = Vec::new();
    while !agenda.is_empty() {
        steps.extend(agenda.portion().iter().map(shown));
    }
    steps
}

#[test]
fn what_was_on_a_lost_machine_moves_before_anything_is_placed() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("z", &[]);
    assert_eq!(world.settle(), [["+z@m1"]]);
    world.machine("m2", &[]);
    world.lose("m1");
    world.launch("a", &[]);
    assert_eq!(world.settle(), [["z:m1>m2", "+a@m2"]]);
    world.lose("m2");
    assert_eq!(world.settle(), [["-a@m2", "-z@m2"]]);
}

#[test]
fn followers_wait_until_it_is_known_that_their_leader_has_come() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("a", &["MachineOf=b"]);
    world.launch("b", &["MachineOf=c"]);
    world.launch("c", &[]);
    world.launch("d", &["MachineOf=c"]);
    let portions = [vec!["+c@m1"], vec!["+b@m1", "+d@m1"], vec!["+a@m1"]];
    assert_eq!(world.settle(), portions);
    world.machine("m2", &[]);
    world.lose("m1");
    let portions = [vec!["c:m1>m2"], vec!["b:m1>m2", "d:m1>m2"], vec!["a:m1>m2"]];
    assert_eq!(world.settle(), portions);
}

#[test]
fn a_unit_takes_the_place_of_another_after_that_has_left() {
    let mut world = World::new();
    world.machine("m1", &[("zone", "a")]);
    world.machine("m2", &[("zone", "b")]);
    world.launch("u", &["MachineMetadata=zone=a", "Conflicts=v"]);
    world.launch("v", &["MachineMetadata=zone=b"]);
    assert_eq!(world.settle(), [["+u@m1", "+v@m2"]]);
    // The machines swap their zones: each unit must go to the other one.
    world.machine("m1", &[("zone", "b")]);
    world.machine("m2", &[("zone", "a")]);
    let agenda = all(world.decider.decide());
    assert_eq!(agenda, ["-u@m1", "-v@m2", "+u@m2", "+v@m1"]);
}

#[test]
fn unreadable_units_stay_and_no_plan_relies_on_their_leaving() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("a", &["Conflicts=b"]);
    world.launch("f", &["MachineOf=a"]);
    assert_eq!(world.settle(), [["+a@m1"], ["+f@m1"]]);
    world.machine("m2", &[]);
    world.see(KeyChange::Desired(
        "a".into(),
        Record::Unreadable { version: Some(2) },
    ));
    world.launch("b", &["MachineID=m1"]);
    assert_eq!(world.settle(), Vec::<Vec<String>>::new());
    assert_eq!(world.decider.left_alone_count(), 1);
    assert_eq!(
        world.decider.left_alone().0,
        [(Key::Desired("a".into()), Some(2))]
    );
    assert_eq!(world.decider.left_alone().0, []);
    let refused =
        "no machine can run it: MachineID=m1: 1 machine (m2); Conflicts: 1 machine (m1: a)";
    assert_eq!(world.explain("b"), refused);
    // Nor is it placed where a machine is unreadable or gone, and its followers stay with it.
    world.see(KeyChange::Machine(
        "m1".into(),
        Record::Unreadable { version: None },
    ));
    assert_eq!(world.settle(), Vec::<Vec<String>>::new());
    world.lose("m1");
    assert_eq!(world.settle(), Vec::<Vec<String>>::new());
    world.set_desired("a", DesiredState::Loaded);
    assert_eq!(world.settle(), [["a:m1>m2"], ["f:m1>m2"]]);
    assert_eq!(world.decider.left_alone_count(), 0);
}

#[test]
fn unreadable_states_are_logged_once_and_counted() {
    let mut world = World::new();
    let key = StateKey {
        unit: "a".into(),
        machine: "m1".into(),
    };
    let state = |state| KeyChange::State(key.clone(), state);
    let unknown = |exists| KeyChange::Unknown {
        name: "/fleet/v3/weird".into(),
        exists,
    };
    for _ in 0..2 {
        world.see(state(Record::Unreadable { version: None }));
        world.see(unknown(true));
    }
    let key = Key::State(key.clone());
    assert_eq!(world.decider.left_alone_count(), 2);
    let told = (vec![(key.clone(), None)], vec!["/fleet/v3/weird".into()]);
    assert_eq!(world.decider.left_alone(), told);
    // After a new list only new keys are reported.
    let mut found = Snapshot::default();
    found.extend([
        state(Record::Unreadable { version: Some(2) }),
        unknown(true),
    ]);
    world.mirror.replace(found);
    world.decider.apply_touched();
    let told = (vec![(key, Some(2))], vec![]);
    assert_eq!(world.decider.left_alone(), told);
    assert_eq!(world.decider.left_alone_count(), 2);
    world.see(state(Record::Absent));
    world.see(unknown(false));
    assert_eq!(world.decider.left_alone_count(), 0);
}

#[test]
fn a_placement_on_an_impossible_machine_is_not_changed() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("a", &[]);
    world.place("a", "no/machine", EPOCH);
    world.launch("b", &[]);
    assert_eq!(world.settle(), [["+b@m1"]]);
    assert_eq!(world.decider.left_alone_count(), 1);
    world.see(KeyChange::Placement("a".into(), Record::Absent));
    world.placements.remove("a");
    assert_eq!(world.settle(), [["+a@m1"]]);
}

#[test]
fn a_unit_without_desired_state_stays_and_so_do_its_followers() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("lead", &[]);
    world.launch("with", &["MachineOf=lead"]);
    assert_eq!(world.settle(), [["+lead@m1"], ["+with@m1"]]);
    world.see(KeyChange::Desired("lead".into(), Record::Absent));
    assert_eq!(world.settle(), [[""; 0]; 0]);
    assert_eq!(world.decider.left_alone_count(), 1);
    assert_eq!(
        world.decider.left_alone().0,
        [(Key::Desired("lead".into()), None)]
    );
    world.launch("lead", &[]);
    assert_eq!(world.settle(), [[""; 0]; 0]);
    assert_eq!(world.decider.left_alone_count(), 0);
}

#[test]
fn while_machines_are_awaited_their_units_stay_placed() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.machine("m2", &[]);
    world.launch("a", &[]);
    assert_eq!(world.settle(), [["+a@m1"]]);
    world.decider.await_machines(true);
    world.lose("m1");
    world.launch("b", &["MachineOf=a"]);
    world.launch("c", &[]);
    assert_eq!(world.settle(), [["+c@m2"]]);
    world.decider.await_machines(false);
    assert!(world.decider.is_outdated());
    assert_eq!(world.settle(), [["a:m1>m2"], ["+b@m2"]]);
}

#[test]
fn templates_run_nowhere_whatever_is_stored() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("t@.service", &[]);
    world.launch("t@1.service", &[]);
    assert_eq!(world.settle(), [["+t@1.service@m1"]]);
    assert_eq!(world.decider.unplaced_count(), 0);
}

#[test]
fn only_what_others_do_makes_a_plan_wrong() {
    let mut world = World::new();
    world.machine("m1", &[]);
    world.launch("a", &[]);
    let mut agenda = world.decider.decide();
    let portion = agenda.portion();
    world.carry_out(&portion[0]);
    let Step::Planned { task, .. } = &portion[0] else {
        panic!("{portion:?}");
    };
    assert_eq!(task.reason, Reason::NotPlaced(DesiredState::Launched));
    assert!(!world.decider.is_outdated(), "it has seen its own write");
    world.place("a", "m1", EPOCH - 1);
    assert!(world.decider.is_outdated(), "another has placed it");
    world.settle();
    let label = world.stored(Label { value: None });
    let (machine, key) = ("m1".to_owned(), "zone".to_owned());
    world.see(KeyChange::Label(LabelKey { machine, key }, label));
    assert!(world.decider.is_outdated(), "metadata was set");
    let leader = Leader {
        id: "m2".into(),
        version: 1,
    };
    assert!(world.decider.is_deposed(), "nobody was seen to lead");
    let (created, revision) = (EPOCH, EPOCH);
    let value = leader.clone();
    let ours = Stored {
        value,
        created,
        revision,
    };
    world.see(KeyChange::Leader(Record::Present(ours)));
    assert!(!world.decider.is_deposed());
    let another = world.stored(leader);
    world.see(KeyChange::Leader(another));
    assert!(world.decider.is_deposed());
}

#[test]
fn a_step_about_what_is_newer_than_the_plan_is_stale() {
    for is_gone in [false, true] {
        let mut world = World::new();
        world.machine("m1", &[]);
        world.launch("a", &[]);
        world.decider.read(Decider::update_cluster);
        let tasks = world.decider.cluster.plan();
        let planned_at = world.revision;
        if is_gone {
            world.see(KeyChange::Unit("a".into(), Record::Absent));
            world.see(KeyChange::Desired("a".into(), Record::Absent));
        } else {
            world.launch("a", &["MachineID=none"]);
        }
        let agenda = |decider: &mut Decider, snapshot: &Snapshot| decider.agenda(snapshot, &tasks);
        let portion = world.decider.read(agenda).portion();
        let Step::Planned { desired, .. } = portion[0] else {
            panic!("{portion:?}");
        };
        let stored = world.mirror.read(|picture| {
            let desired = picture.snapshot.desired.get("a");
            desired.map(|desired| desired.revision)
        });
        assert!(
            desired == planned_at && stored != Some(desired),
            "{stored:?}"
        );
    }
}

#[test]
fn unplaced_units_are_counted_and_those_on_a_drained_machine_are_not() {
    let mut world = World::new();
    world.launch("a", &[]);
    world.launch("b", &["MachineOf=a"]);
    world.unit("c", &[], DesiredState::Inactive);
    world.settle();
    assert_eq!(world.decider.unplaced_count(), 2);
    assert_eq!(world.explain("a"), "there are no machines");
    assert_eq!(world.explain("c"), "");
    world.machine("m1", &[]);
    world.settle();
    assert_eq!(world.decider.unplaced_count(), 0);
    let drain = world.stored(Drain::default());
    world.see(KeyChange::Drain("m1".into(), drain));
    world.settle();
    assert_eq!(world.decider.unplaced_count(), 0);
    assert!(world.explain("a").starts_with("no machine can run it: "));
    world.set_desired("a", DesiredState::Inactive);
    world.settle();
    assert_eq!(world.decider.unplaced_count(), 1);
    assert_eq!(world.explain("b"), "waits for a, which is on no machine");
}

/// A unit: its number, its requirement, the other unit in it, and its desired state.
type Given = (usize, usize, usize, usize);

fn set(world: &mut World, (number, kind, other, state): Given) {
    let other = format!("u{other}");
    let zone = format!("MachineMetadata=zone={}", ["a", "b"][kind % 2]);
    let lines = match kind {
        0 | 1 => vec![zone],
        2 | 3 => vec![format!("Conflicts={other}"), zone],
        4 => vec![format!("Conflicts={other}")],
        5 => vec!["Conflicts=u[0-3]".to_owned()],
        6 => vec![format!("MachineOf={other}")],
        7 => vec![format!("Replaces={other}")],
        _ => vec![],
    };
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let state = if state == 0 {
        DesiredState::Inactive
    } else {
        DesiredState::Launched
    };
    world.unit(&format!("u{number}"), &lines, state);
}

fn given() -> impl Strategy<Value = Given> {
    (0..8_usize, 0..11_usize, 0..8_usize, 0..5_usize)
}

proptest! {
    #[test]
    fn no_step_brings_together_what_excludes_each_other(
        units in vec(given(), 1..12),
        changes in vec(given(), 0..6),
        zones in vec(0..3_usize, 5),
        later in vec(0..4_usize, 5),
        stale in vec(0..4_usize, 40),
    ) {
        let mut world = World::new();
        let set_machine = |world: &mut World, index: usize, zone: usize| {
            let id = format!("m{index}");
            match zone {
                0 => world.machine(&id, &[("zone", "a")]),
                1 => world.machine(&id, &[("zone", "b")]),
                2 => world.machine(&id, &[]),
                _ => world.lose(&id),
            }
        };
        zones.iter().enumerate().for_each(|(index, zone)| set_machine(&mut world, index, *zone));
        for unit in units {
            set(&mut world, unit);
        }
        world.settle();
        prop_assert!(world.crowded().is_empty());
        for unit in changes {
            set(&mut world, unit);
        }
        later.iter().enumerate().for_each(|(index, zone)| set_machine(&mut world, index, *zone));
        let mut stale = stale.into_iter().cycle();
        for _ in 0..30 {
            let mut agenda = world.decider.decide();
            let mut before = world.crowded();
            while !agenda.is_empty() {
                let mut is_stale = false;
                for step in agenda.portion() {
                    let shown = shown(&step);
                    // Any step may be stale because its user has changed the desired state.
                    let is_leave = matches!(&step, Step::Planned { task, .. } if task.to.is_none());
                    if stale.next() == Some(0) {
                        is_stale = true;
                        continue;
                    }
                    world.carry_out(&step);
                    if !is_leave {
                        prop_assert!(world.suits(step.unit()), "{}", shown);
                    }
                    let now = world.crowded();
                    prop_assert!(now.is_subset(&before), "{} {:?}", shown, now);
                    before = now;
                }
                if is_stale {
                    break;
                }
            }
        }
        world.settle();
        prop_assert!(world.crowded().is_empty());
    }
}

//! The cost of the engine's decisions, from 100 machines and 1,000 units to 10,000 and 100,000.
//!
//! `make bench-engine` prints a table and exits with 1 if a target is missed. Each row except the growth is
//! measured in its own process, for its memory.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts and times are far below 2^52"
)]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use hyperfleet_fleet_model::schedule::{Cluster, ClusterChange, Job, Machine, MachineId, Task};
use hyperfleet_fleet_model::unit::{DesiredState, Glob, Requirements, UnitName};
use rustix::time::{ClockId, clock_gettime};

const SIZES: [(usize, usize); 3] = [(100, 1_000), (1_000, 10_000), (10_000, 100_000)];
const SHAPES: [&str; 3] = ["plain", "metadata", "conflicts"];
/// Units of a group exclude each other.
const GROUP: usize = 10;
const ZONES: usize = 10;
/// The fastest of these runs counts; the others had noise.
const TURNS: usize = 5;

/// Targets in milliseconds of processor time, by size: placing everything, and a pass without work.
const PLACE_ALL_MAX: [f64; 3] = [f64::INFINITY, 100.0, 3_000.0];
const IDLE_MAX: f64 = 1.0;
/// By how much the exponent of placing everything may exceed that of the tree, which measures N log N on this
/// machine (1.13). The rest is slower memory: the cluster takes eight times the memory of the tree.
const EXPONENT_BEYOND_MAX: f64 = 0.2;

/// The measured steps, in milliseconds.
const STEPS: [&str; 8] = [
    "take in",
    "place all",
    "of the processor",
    "a tree of as many",
    "see it placed",
    "idle",
    "one machine lost",
    "one unit added",
];
const PLACE_ALL: usize = 2;
const TREE: usize = 3;
const IDLE: usize = 5;

fn machine(index: usize) -> ClusterChange {
    let metadata = [
        ("zone", format!("z{}", index % ZONES)),
        ("host", format!("host-{index}")),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    ClusterChange::Machine(Machine::new(machine_id(index), metadata.into()))
}

/// Ids like systemd's, in another order than the machines.
fn machine_id(index: usize) -> MachineId {
    let scattered = (index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    MachineId::new(format!("{scattered:032x}"))
}

fn unit(shape: &str, index: usize) -> ClusterChange {
    let group = index / GROUP;
    let mut requirements = Requirements::default();
    if shape == "metadata" {
        let zone = format!("z{}", index % ZONES);
        requirements.metadata = [("zone".to_owned(), [zone].into())].into();
    }
    if shape == "conflicts" {
        requirements.conflicts = vec![Glob::new(format!("web{group}@*.service"))];
    }
    let name = UnitName::stored(format!("web{group}@{}.service", index % GROUP));
    let desired = DesiredState::Launched;
    ClusterChange::Unit(Job::new(name, requirements, desired, None))
}

fn milliseconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = black_box(work());
    (start.elapsed().as_secs_f64() * 1000.0, result)
}

/// Milliseconds of processor time of this thread.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Processor time of a task that is N log N by nature, over as many names in as much memory: each name is
/// inserted into a tree, in the order of machines' ids.
fn tree(units: usize) -> f64 {
    let names: Vec<_> = (0..units)
        .map(|index| UnitName::stored(machine_id(index).as_str()))
        .collect();
    let before = processor();
    let mut tree = BTreeSet::new();
    tree.extend(names.iter().cloned().map(|name| (name.clone(), name)));
    black_box(&tree);
    processor() - before
}

fn carry_out(cluster: &mut Cluster, plan: &[Task]) {
    for task in plan {
        let job = cluster.job(task.unit.as_str());
        let job = job.expect("what is planned is known").clone();
        let placed_on = task.to.clone();
        cluster.apply(ClusterChange::Unit(Job { placed_on, ..job }));
    }
}

/// Runs each step once, in order, on one cluster.
fn turn(shape: &str, machines: usize, units: usize) -> [f64; STEPS.len()] {
    let changes: Vec<_> = (0..machines)
        .map(machine)
        .chain((0..units).map(|index| unit(shape, index)))
        .collect();
    let mut cluster = Cluster::new();
    let (take_in, ()) =
        milliseconds(|| changes.into_iter().for_each(|change| cluster.apply(change)));
    let before = processor();
    let (place_all, plan) = milliseconds(|| cluster.plan());
    let of_processor = processor() - before;
    assert_eq!(plan.len(), units, "everything finds a machine");
    let (see, ()) = milliseconds(|| {
        carry_out(&mut cluster, &plan);
        assert!(cluster.plan().is_empty(), "nothing is left to do");
    });
    let (idle, _) = milliseconds(|| cluster.plan());
    let (lost, plan) = milliseconds(|| {
        cluster.apply(ClusterChange::MachineGone(machine_id(machines / 2)));
        cluster.plan()
    });
    assert_eq!(plan.len(), 2 * units / machines, "only its units move");
    carry_out(&mut cluster, &plan);
    assert!(cluster.plan().is_empty(), "nothing is left to do");
    let (added, plan) = milliseconds(|| {
        cluster.apply(unit(shape, units));
        cluster.plan()
    });
    assert_eq!(plan.len(), 1, "only the new one is placed");
    let tree = tree(units);
    [
        take_in,
        place_all,
        of_processor,
        tree,
        see,
        idle,
        lost,
        added,
    ]
}

/// The fastest runs, and their peak memory in MB.
fn measure(shape: &str, machines: usize, units: usize) -> Vec<f64> {
    let mut best = [f64::INFINITY; STEPS.len()];
    for _ in 0..TURNS {
        let turn = turn(shape, machines, units);
        best = std::array::from_fn(|step| best[step].min(turn[step]));
    }
    best.into_iter().chain([memory()]).collect()
}

/// Peak memory of this process in MB; NaN where the system does not report it.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
}

/// Measures in a process of its own.
fn measured(shape: &str, machines: usize, units: usize) -> Vec<f64> {
    let itself = std::env::current_exe().expect("a program has a path");
    let arguments = ["cell", shape, &machines.to_string(), &units.to_string()];
    let output = Command::new(itself).args(arguments).output();
    let output = output.expect("it runs once more");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = text.split_whitespace().map(str::parse);
    numbers
        .collect::<Result<_, _>>()
        .expect("it prints numbers")
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [cell, shape, machines, units] = &arguments[..]
        && cell == "cell"
    {
        let count = |text: &str| text.parse().expect("a number");
        let numbers = measure(shape, count(machines), count(units));
        let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        println!("{}", texts.join(" "));
        return ExitCode::SUCCESS;
    }
    println!("| shape | machines × units | {} | MB |", STEPS.join(" | "));
    println!("| --- | --- |{}", " ---: |".repeat(STEPS.len() + 1));
    let missed: Vec<_> = SHAPES.into_iter().flat_map(row_group).collect();
    if missed.is_empty() {
        println!("\nmilliseconds; every aim is met");
        return ExitCode::SUCCESS;
    }
    println!("\nmilliseconds; missed: {}", missed.join(", "));
    ExitCode::FAILURE
}

/// Prints the rows of a shape. Returns the missed targets.
fn row_group(shape: &str) -> Vec<String> {
    let rows = SIZES.map(|(machines, units)| {
        let row = measured(shape, machines, units);
        let texts: Vec<_> = row.iter().map(|number| format!("{number:.3}")).collect();
        println!("| {shape} | {machines} × {units} | {} |", texts.join(" | "));
        row
    });
    let exponents: [f64; STEPS.len()] = std::array::from_fn(|step| {
        let units = SIZES[2].1 as f64 / SIZES[0].1 as f64;
        (rows[2][step] / rows[0][step]).ln() / units.ln()
    });
    let texts = exponents.map(|exponent| format!("{exponent:.2}"));
    println!("| {shape} | exponent | {} | |", texts.join(" | "));
    let mut missed = Vec::new();
    for (row, (place_all_max, (machines, _))) in
        rows.iter().zip(PLACE_ALL_MAX.into_iter().zip(SIZES))
    {
        if row[PLACE_ALL] > place_all_max || row[IDLE] > IDLE_MAX {
            missed.push(format!("{shape} with {machines} machines"));
        }
    }
    if exponents[PLACE_ALL] > exponents[TREE] + EXPONENT_BEYOND_MAX {
        missed.push(format!("growth of {shape}"));
    }
    missed
}

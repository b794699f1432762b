//! The measured steps, in this order.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustix::process::Signal;
use tokio::time::sleep;

use super::Scene;
use super::figures::{Figures, milliseconds, print_row, print_times, print_title};
use super::processes::Fleetd;

/// Parallel requests under full load.
pub(crate) const CONNECTIONS: usize = 32;
const FIRST_PAGES: usize = 500;
const WALKS: usize = 3;
const PAGE_MAX: Duration = Duration::from_millis(100);
const REACTION_MAX: Duration = Duration::from_millis(200);
/// A leader's lease, and the time to notice its end.
const TAKE_OVER_MAX: Duration = Duration::from_secs(12);
const HAND_OVER_MAX: Duration = Duration::from_secs(1);
const FIRST_PLACED_MAX: Duration = Duration::from_secs(1);

fn unit(number: usize) -> String {
    format!("unit-{number:05}.service")
}

/// All units at once, each by its own request.
pub(crate) async fn burst(scene: &Scene, ceiling: f64) {
    let units = scene.size.units;
    print_title(&format!(
        "{units} units submitted, {CONNECTIONS} requests at once"
    ));
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let clients = (0..CONNECTIONS).map(|_| submit(&scene.fleetds[0], units, &next));
    let answered: Vec<_> = join_all(clients).await.into_iter().flatten().collect();
    let took = begun.elapsed();
    let row = |what: &str, took: Duration| {
        let rate = units as f64 / took.as_secs_f64();
        let share = 100.0 * rate / ceiling;
        let seconds = took.as_secs_f64();
        print_row(what, &format!("{seconds:.1} s, {rate:.0}/s, {share:.0} %"));
    };
    row("all answered (share of what etcd can alone)", took);
    let placed = scene.seen.until("all are placed", |times| {
        let last = times.placed.values().map(|(_, at)| *at).max()?;
        (times.placed.len() == units).then_some(last)
    });
    row("all placed", placed.await - begun);
    let launched = scene.seen.until("all run", |times| {
        let last = times.launched.values().max()?;
        (times.launched.len() == units).then_some(*last)
    });
    row("all reported to run", launched.await - begun);
    let (mut to_placed, mut to_launched) = (Vec::new(), Vec::new());
    let times = scene.seen.times();
    for (unit, at) in answered {
        to_placed.push(times.placed[&unit].1.saturating_duration_since(at));
        to_launched.push(times.launched[&unit].saturating_duration_since(at));
    }
    drop(times);
    print_times("answered to placed", &mut to_placed);
    print_times("answered to reported", &mut to_launched);
}

/// Submits units until none is left. Returns when each was answered.
async fn submit(fleetd: &Fleetd, units: usize, next: &AtomicUsize) -> Vec<(String, Instant)> {
    let mut answered = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= units {
            return answered;
        }
        let name = unit(number);
        fleetd.launch(&name).await;
        answered.push((name, Instant::now()));
    }
}

/// Nothing happens except renewals of leases.
pub(crate) async fn idle(scene: &Scene, figures: &mut Figures) {
    let seconds = scene.size.idle_seconds;
    print_title(&format!("idle for {seconds} s"));
    sleep(Duration::from_secs(5)).await;
    let revision = async || scene.registry.newest().await.expect("etcd answers");
    let [first, second] = &scene.fleetds;
    let mut processes = vec![
        ("fleetd that leads", &first.process),
        ("fleetd that stands by", &second.process),
        ("etcd", &scene.etcd.process),
    ];
    if let Some((_, fleetd)) = &scene.real {
        processes.push(("fleetd that runs an agent only", &fleetd.process));
    }
    let processors = || {
        let each = processes.iter().map(|(_, process)| process.processor());
        each.collect::<Vec<_>>()
    };
    let before = (revision().await, processors(), scene.etcd.metrics().await);
    sleep(Duration::from_secs(seconds)).await;
    let after = (revision().await, processors(), scene.etcd.metrics().await);
    print_row("revisions of etcd", &(after.0 - before.0).to_string());
    let called = |metrics: &[(String, f64)], words: &[&str]| -> f64 {
        let is_meant = |name: &str| words.iter().all(|word| name.contains(word));
        let meant = metrics.iter().filter(|(name, _)| is_meant(name));
        meant.map(|(_, value)| value).sum()
    };
    let calls = [
        ("calls of etcd", &["grpc_server_started_total"][..]),
        (
            "of these to keep leases",
            &["grpc_server_started_total", "LeaseKeepAlive"],
        ),
        ("transactions", &["grpc_server_started_total", "\"Txn\""]),
        ("ranges", &["grpc_server_started_total", "\"Range\""]),
        (
            "proposals to its log",
            &["etcd_server_proposals_committed_total"],
        ),
    ];
    for (what, words) in calls {
        let count = called(&after.2, words) - called(&before.2, words);
        print_row(what, &format!("{:.1}/s", count / seconds as f64));
    }
    for (((who, _), before), after) in processes.iter().zip(before.1).zip(after.1) {
        let share = 100.0 * (after - before) / seconds as f64;
        print_row(&format!("processor: {who}"), &format!("{share:.1} %"));
    }
    for (who, process) in &processes {
        print_row(
            &format!("memory: {who}"),
            &format!("{:.0} MB", process.memory()),
        );
    }
    figures.aim("nothing is written while idle", after.0 == before.0);
}

/// One unit after another, beside all others.
pub(crate) async fn singles(scene: &Scene, figures: &mut Figures) {
    print_title("one unit at a time");
    let [mut answer, mut placed, mut launched, mut reaction] = [const { Vec::new() }; 4];
    for number in 0..scene.size.singles {
        let name = unit(scene.size.units + number);
        let begun = Instant::now();
        scene.fleetds[0].launch(&name).await;
        let answered = Instant::now();
        answer.push(answered - begun);
        let at = scene.seen.until_placed(&name).await;
        placed.push(at.saturating_duration_since(answered));
        reaction.push(at - begun);
        let at = scene.seen.until_launched(&name).await;
        launched.push(at.saturating_duration_since(answered));
    }
    print_times("submitted to answered", &mut answer);
    print_times("answered to placed", &mut placed);
    print_times("answered to reported", &mut launched);
    let most = print_times("submitted to placed", &mut reaction);
    figures.aim(
        "p99 of submitted to placed below 200 ms",
        most < REACTION_MAX,
    );
}

/// Pages as clients read them.
pub(crate) async fn lists(scene: &Scene, figures: &mut Figures) {
    let fleetd = &scene.fleetds[0];
    for what in ["units", "state"] {
        print_title(&format!("GET /fleet/v1/{what}"));
        let mut first = Vec::new();
        for _ in 0..FIRST_PAGES {
            let begun = Instant::now();
            fleetd.page(what, None).await;
            first.push(begun.elapsed());
        }
        let (mut later, mut walks) = (Vec::new(), Vec::new());
        for _ in 0..WALKS {
            let walked = Instant::now();
            let (mut count, mut token) = fleetd.page(what, None).await;
            while let Some(next) = token {
                let begun = Instant::now();
                let page = fleetd.page(what, Some(&next)).await;
                later.push(begun.elapsed());
                (count, token) = (count + page.0, page.1);
            }
            walks.push(walked.elapsed());
            assert_eq!(
                count,
                scene.size.units + scene.size.singles,
                "all of {what}"
            );
        }
        let most = print_times("the first page", &mut first);
        let most = most.max(print_times("a later page", &mut later));
        print_times("all pages, one after the other", &mut walks);
        figures.aim("p99 of a page below 100 ms", most < PAGE_MAX);
    }
}

/// Agents are lost at once. Their units run elsewhere once the leases have expired.
pub(crate) async fn lose_machines(scene: &mut Scene) {
    let count = scene.size.lost.min(scene.agents.len().saturating_sub(1));
    print_title(&format!("machines lost at once: {count}"));
    let lost = scene.agents.split_off(scene.agents.len() - count);
    let units: usize = lost.iter().map(|(_, agent)| agent.running().len()).sum();
    let ids: HashSet<String> = lost.iter().map(|(id, _)| id.clone()).collect();
    let begun = Instant::now();
    drop(lost);
    let gone = scene.seen.until("they are gone", |times| {
        let gone = ids.iter().map(|id| times.gone.get(id).copied());
        gone.collect::<Option<Vec<_>>>()?.into_iter().max()
    });
    let gone = gone.await;
    let moved = scene.seen.until("all have moved", |times| {
        let mut places = times.placed.values();
        let is_left = places.any(|(machine, _)| ids.contains(machine));
        (!is_left).then(|| times.placed.values().map(|(_, at)| *at).max())?
    });
    let moved = moved.await;
    print_row("units that they had", &units.to_string());
    let seconds = (gone - begun).as_secs_f64();
    print_row("lost to the last lease run out", &format!("{seconds:.1} s"));
    let time = milliseconds(moved.saturating_duration_since(gone));
    print_row(
        "the last lease run out to all placed elsewhere",
        &format!("{time:.0} ms"),
    );
}

/// The leader stops gracefully, and then its successor is killed.
pub(crate) async fn hand_over(scene: &mut Scene, figures: &mut Figures) {
    print_title("who leads changes");
    let begun = Instant::now();
    scene.fleetds[0].process.signal(Signal::TERM);
    let [led, placed] = take_over(scene, 1, begun, 0).await;
    print_row("graceful stop until another leads", &seconds(led));
    print_row("graceful stop until a unit is placed", &seconds(placed));
    figures.aim("hand-over at once", led < HAND_OVER_MAX);
    let folder = scene.folder.path();
    scene.fleetds[0] = Fleetd::start(&scene.etcd, folder, "engine-c").await;
    let begun = Instant::now();
    scene.fleetds[1].process.signal(Signal::KILL);
    let [led, placed] = take_over(scene, 0, begun, 1).await;
    print_row("killed to another leads", &seconds(led));
    print_row("killed to it has placed a unit", &seconds(placed));
    figures.aim(
        "taken over within a lease of 10 s and 2 s more",
        led < TAKE_OVER_MAX,
    );
    // The next leader has read nothing before it leads.
    scene.fleetds[0].process.signal(Signal::TERM);
    let gone = scene.seen.until("no engine leads", |times| {
        times.leader.is_none().then_some(())
    });
    gone.await;
    let folder = scene.folder.path();
    let begun = Instant::now();
    scene.fleetds[1] = Fleetd::start(&scene.etcd, folder, "engine-d").await;
    let [led, placed] = take_over(scene, 1, begun, 2).await;
    print_row("started alone to it leads", &seconds(led));
    print_row("started alone to it has placed a unit", &seconds(placed));
    figures.aim(
        "a new leader places its first unit within 1 s",
        placed.saturating_sub(led) < FIRST_PLACED_MAX,
    );
}

/// How long it took until the next engine led and had placed a unit.
async fn take_over(scene: &Scene, next: usize, begun: Instant, number: usize) -> [Duration; 2] {
    let fleetd = &scene.fleetds[next];
    let led = scene.seen.until("it leads", |times| {
        let (leader, at) = times.leader.as_ref()?;
        (*leader == fleetd.id).then_some(*at)
    });
    let name = format!("later-{number}.service");
    fleetd.launch(&name).await;
    let led = led.await;
    let placed = scene.seen.until_placed(&name).await;
    [led - begun, placed.saturating_duration_since(begun)]
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

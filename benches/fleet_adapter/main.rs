//! The fleet adapter at its size: node pools over REST that become units on simulated machines.
//!
//! `make bench-fleet-adapter` prints tables; it ends with 1 if an aim is missed. The service, its PostgreSQL and etcd are
//! the real programs; engine, adapter and agents run in this process, the agents on a systemd that only remembers. All share
//! this machine. `ARGS="pools=100 restart=300"` makes it smaller, for trying.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts and times are far below 2^52"
)]

mod scene;

use std::process::ExitCode;
use std::time::Duration;

use hyperfleet_testkit::named_counts;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use scene::{Adapter, Scene};

/// Units of a node pool.
const REPLICAS: usize = 3;
/// Requests at once.
const CONNECTIONS: usize = 32;

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
struct Size {
    machines: usize,
    /// Node pools that converge.
    pools: usize,
    /// Node pools of which a restarted adapter finds the units.
    restart: usize,
    /// Changes that are timed one by one.
    changes: usize,
    idle_seconds: u64,
    /// Number of resources that the adapter works on at a time.
    workers: usize,
}

impl Size {
    fn read() -> Self {
        let mut size = Self {
            machines: 50,
            pools: 1000,
            restart: 3334,
            changes: 100,
            idle_seconds: 30,
            workers: 32,
        };
        for (name, count) in named_counts() {
            match name.as_str() {
                "machines" => size.machines = count,
                "pools" => size.pools = count,
                "restart" => size.restart = count,
                "changes" => size.changes = count,
                "idle" => size.idle_seconds = count as u64,
                "workers" => size.workers = count,
                _ => {
                    panic!("machines=, pools=, restart=, changes=, idle= or workers=, not {name}=")
                }
            }
        }
        size
    }
}

/// Prints a row; notes an aim that is missed.
struct Table {
    missed: usize,
}

impl Table {
    fn title(title: &str) {
        println!("\n| {title} | |\n| --- | ---: |");
    }

    fn row(what: &str, figure: &str) {
        println!("| {what} | {figure} |");
    }

    fn aim(&mut self, what: &str, is_met: bool) {
        Self::row(
            &format!("aim: {what}"),
            if is_met { "met" } else { "MISSED" },
        );
        self.missed += usize::from(!is_met);
    }
}

async fn measure(size: Size) -> usize {
    println!("{size:?}");
    let mut table = Table { missed: 0 };
    let scene = Scene::set(size.machines).await;
    let submitted = submit(&scene, size.pools * REPLICAS).await;
    let cluster = scene.cluster().await;
    make_pools(&scene, &cluster, 0..size.pools).await;
    let adapter = Adapter::start(&scene, size.workers).await;
    let converged = converge(&scene, size.pools).await;
    let ratio = converged / submitted;
    Table::row(
        "units a second, of those submitted to fleet",
        &format!("{:.0} %", ratio * 100.0),
    );
    table.aim(
        "half of the rate at which units are submitted to fleet",
        ratio >= 0.5,
    );
    changes(&scene, &cluster, size).await;
    idle(&scene, size).await;
    restart(&scene, &cluster, size, adapter, &mut table).await;
    table.missed
}

/// Units submitted to fleet directly, until all run: units a second.
async fn submit(scene: &Scene, units: usize) -> f64 {
    Table::title(&format!(
        "{units} units submitted to fleet, {CONNECTIONS} at once, without the adapter"
    ));
    let begun = Instant::now();
    let mut submitters = JoinSet::new();
    for first in 0..CONNECTIONS {
        let fleet = scene.fleet.clone();
        submitters.spawn(async move {
            for number in (first..units).step_by(CONNECTIONS) {
                scene::submit(&fleet, &format!("direct-{number}.service")).await;
            }
        });
    }
    submitters.join_all().await;
    scene.until_running(units).await;
    let rate = units as f64 / begun.elapsed().as_secs_f64();
    Table::row(
        "all run",
        &format!("{:.1} s, {rate:.0}/s", begun.elapsed().as_secs_f64()),
    );
    scene.destroy_all().await;
    rate
}

async fn make_pools(scene: &Scene, cluster: &str, numbers: std::ops::Range<usize>) {
    let mut makers = JoinSet::new();
    for first in 0..CONNECTIONS {
        let (scene, cluster, numbers) = (scene.client(), cluster.to_owned(), numbers.clone());
        makers.spawn(async move {
            for number in numbers.skip(first).step_by(CONNECTIONS) {
                let spec = json!({"replicas": REPLICAS, "version": "0"});
                scene
                    .make_pool(&cluster, &format!("pool-{number}"), spec)
                    .await;
            }
        });
    }
    makers.join_all().await;
}

/// From the adapter's start to all node pools reconciled: units a second.
async fn converge(scene: &Scene, pools: usize) -> f64 {
    Table::title(&format!(
        "{pools} node pools of {REPLICAS} units, the adapter starts"
    ));
    let begun = Instant::now();
    scene.until_running(pools * REPLICAS).await;
    let running = begun.elapsed().as_secs_f64();
    scene.until_reconciled(pools).await;
    let reconciled = begun.elapsed().as_secs_f64();
    let rate = (pools * REPLICAS) as f64 / reconciled;
    Table::row("all run", &format!("{running:.1} s"));
    Table::row(
        "all reconciled",
        &format!("{reconciled:.1} s, {rate:.0} units/s"),
    );
    rate
}

/// One change after the other: from PATCH to the service with the new file, and to `Reconciled=True`.
async fn changes(scene: &Scene, cluster: &str, size: Size) {
    Table::title(&format!(
        "{} changes of a node pool of one unit, one after the other",
        size.changes
    ));
    let client = scene.client();
    let spec = |version: usize| json!({"replicas": 1, "version": format!("v{version}.")});
    let pool = client.make_pool(cluster, "changed", spec(0)).await;
    scene.until_file("VERSION=v0.").await;
    let (mut active, mut reconciled) = (Vec::new(), Vec::new());
    for version in 1..=size.changes {
        // At any moment between two polls of the adapter.
        sleep(Duration::from_millis(37 * (version as u64 % 29))).await;
        let begun = Instant::now();
        client.patch(&pool, json!({"spec": spec(version)})).await;
        scene.until_file(&format!("VERSION=v{version}.")).await;
        active.push(begun.elapsed());
        client.until_reconciled(&pool).await;
        reconciled.push(begun.elapsed());
    }
    for (what, times) in [
        ("PATCH to new unit active", &mut active),
        ("PATCH to reconciled", &mut reconciled),
    ] {
        times.sort_unstable();
        let at = |percent: usize| {
            times[(times.len() * percent).div_ceil(100).max(1) - 1].as_secs_f64() * 1000.0
        };
        Table::row(what, &format!("p50 {:.0} ms, p99 {:.0} ms", at(50), at(99)));
    }
}

async fn idle(scene: &Scene, size: Size) {
    let seconds = size.idle_seconds;
    Table::title(&format!("{seconds} s in which nothing changes"));
    let before = (
        scene.api_processor(),
        scene.revision().await,
        scene::own_processor(),
    );
    sleep(Duration::from_secs(seconds)).await;
    let after = (
        scene.api_processor(),
        scene.revision().await,
        scene::own_processor(),
    );
    let share =
        |seconds_used: f64| format!("{:.1} % of a core", seconds_used / seconds as f64 * 100.0);
    Table::row("processor: the service", &share(after.0 - before.0));
    Table::row(
        "processor: adapter, engine and all agents",
        &share(after.2 - before.2),
    );
    Table::row("writes to etcd", &format!("{}", after.1 - before.1));
}

/// An adapter that finds many units: from its start to its first write.
async fn restart(scene: &Scene, cluster: &str, size: Size, adapter: Adapter, table: &mut Table) {
    make_pools(scene, cluster, size.pools..size.restart).await;
    let units = size.restart.max(size.pools) * REPLICAS + 1;
    scene.until_running(units).await;
    scene
        .until_reconciled(size.restart.max(size.pools) + 1)
        .await;
    adapter.kill().await;
    let client = scene.client();
    let spec = json!({"spec": {"replicas": 1, "version": "restarted."}});
    let pool = client.find_pool(cluster, "changed").await;
    let unit = scene.unit_of("changed");
    client.patch(&pool, spec).await;
    Table::title(&format!("the adapter starts again beside {units} units"));
    let begun = Instant::now();
    let adapter = Adapter::start(scene, size.workers).await;
    scene.until_stored(&unit, "VERSION=restarted.").await;
    let decided = begun.elapsed();
    scene.until_file("VERSION=restarted.").await;
    for (what, took) in [
        ("start to its first decision stored", decided),
        ("start to that carried out", begun.elapsed()),
    ] {
        Table::row(what, &format!("{:.2} s", took.as_secs_f64()));
    }
    table.aim(
        "5 s to the first decision",
        decided < Duration::from_secs(5),
    );
    adapter.kill().await;
}

fn main() -> ExitCode {
    let size = Size::read();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let missed = runtime.block_on(measure(size));
    if missed > 0 {
        println!("{missed} aims were missed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

//! An adapter that is killed repeatedly.

use std::time::{Duration, SystemTime};

use hyperfleet_testkit::Random;

use super::World;
use super::pool::Pool;

/// How often it is killed after each step.
const KILLS: usize = 3;
/// Within this time after its start: as long as one step of an update takes.
const LIFE_MAX: usize = 2500;

/// Wherever it was killed: in the end everything is as desired, and nothing is left over.
pub(super) async fn at_every_step(world: &mut World, _: &Pool) {
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    println!("moments of the kills: seed {seed}");
    let mut random = Random::seeded(seed);
    let pool = Pool::order(world, "west", 3).await;
    kill_and_kill_again(world, &mut random).await;
    pool.until_runs(world, 1, 3).await;
    pool.patch(world, 2, 2).await;
    kill_and_kill_again(world, &mut random).await;
    pool.until_runs(world, 2, 2).await;
    world.service.rest.delete(&pool.cluster).await;
    kill_and_kill_again(world, &mut random).await;
    pool.until_gone(world).await;
}

async fn kill_and_kill_again(world: &mut World, random: &mut Random) {
    for _ in 0..KILLS {
        let life = Duration::from_millis(random.below(LIFE_MAX).try_into().unwrap());
        tokio::time::sleep(life).await;
        world.service.kill_adapter();
        world.service.start_adapter();
    }
}

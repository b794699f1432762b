//! The retry of guarded writes. A write is guarded by the records that it was decided on, so that of several concurrent
//! writers one succeeds, and the others read and decide again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::Error;

/// How often a write is decided.
const ATTEMPTS_MAX: u32 = 32;
/// The pause doubles so often: up to two seconds. Simulated, 200 writers of one unit whose reads and commits take 4 ms
/// each all succeed within 24 attempts; with pauses up to half a second, some need 67.
const DOUBLINGS_MAX: u32 = 11;

/// Decides and commits until a commit succeeds. `attempt` returns `None` if a record has changed since it was read.
///
/// # Errors
/// Errors of `attempt`; [`Error::Busy`] if other writers were always faster.
pub async fn decide_and_commit<T, E, F>(mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    E: From<Error>,
    F: Future<Output = Result<Option<T>, E>>,
{
    for lost in 0..ATTEMPTS_MAX {
        if let Some(done) = attempt().await? {
            return Ok(done);
        }
        tokio::time::sleep(pause(lost)).await;
    }
    Err(Error::Busy.into())
}

/// A random pause after so many lost races, so that the same writers do not collide again.
fn pause(lost: u32) -> Duration {
    let longest = Duration::from_millis(1 << lost.min(DOUBLINGS_MAX));
    // The hasher has random keys: random enough, without another crate.
    let share = RandomState::new().hash_one(lost) % 1024;
    longest.mul_f64(f64::from(u32::try_from(share).unwrap_or(0)) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_always_loses_ends_as_busy() {
        let mut attempts = 0;
        let lost = decide_and_commit(|| {
            attempts += 1;
            async { Ok::<Option<()>, Error>(None) }
        });
        assert!(matches!(lost.await, Err(Error::Busy)));
        assert_eq!(attempts, ATTEMPTS_MAX);
    }

    #[test]
    fn pauses_grow_to_a_maximum_and_differ() {
        let pauses: std::collections::BTreeSet<_> = (0..40).map(pause).collect();
        assert!(pauses.len() > 10, "{pauses:?}");
        let longest = pauses.last().copied().unwrap_or_default();
        assert!((100..2048).contains(&longest.as_millis()), "{pauses:?}");
    }
}

//! The whole registry in the memory of this process, kept current by one watch. Lists, followers and the engine
//! read it.

mod cluster;
mod picture;
mod run;
mod touched;

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use self::cluster::Built;
pub(super) use self::picture::{Picture, touches_of};
pub(super) use self::touched::{Since, Touch};
use crate::keys::Revision;
use crate::registry::{Key, KeyChange, Snapshot};

/// How long a read waits for writes. They return through the watch within milliseconds, unless etcd is in trouble.
const PATIENCE: Duration = Duration::from_secs(5);

/// The picture of the registry, and its followers.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// Locked briefly: for a page, a batch of the watch, or a lookup by the engine. Never across an await.
    picture: RwLock<Picture>,
    progress: watch::Sender<MirrorProgress>,
    /// Followers of every key.
    followers: Mutex<Vec<mpsc::UnboundedSender<KeysTouched>>>,
    /// Newest revision that this process has written.
    written: watch::Sender<Revision>,
    built: Built,
}

/// Keys that were touched. Followers look the records up.
#[derive(Debug, Clone)]
pub(crate) enum KeysTouched {
    /// These keys were put or deleted.
    These(Vec<Key>),
    /// Everything was listed again: any key may have changed.
    All,
}

/// The mirror's progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MirrorProgress {
    /// Revision of the picture; 0 before the first list.
    pub(super) revision: Revision,
    /// Whether the watch is open.
    pub(super) is_connected: bool,
    /// How often earlier revisions became void because etcd was restored.
    pub(super) restores: u32,
}

impl Mirror {
    pub(super) fn is_connected(&self) -> bool {
        self.progress.borrow().is_connected
    }

    /// How often earlier revisions became void.
    pub(super) fn restores(&self) -> u32 {
        self.progress.borrow().restores
    }

    /// Subscribes to news. Current news counts as seen.
    pub(super) fn subscribe(&self) -> watch::Receiver<MirrorProgress> {
        self.progress.subscribe()
    }

    /// Waits until the mirror is connected and has reached a revision.
    pub(super) async fn wait_for_revision(&self, revision: Revision) {
        let is_there =
            |progress: &MirrorProgress| progress.is_connected && progress.revision >= revision;
        // The sender lives as long as the mirror.
        let _ = self.subscribe().wait_for(is_there).await;
    }

    /// Follows every key. Followers are notified before the changed picture can be read.
    pub(super) fn follow_keys(&self) -> mpsc::UnboundedReceiver<KeysTouched> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut followers = self
            .followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        followers.push(sender);
        receiver
    }

    fn notify_followers(&self, touched: &KeysTouched) {
        let mut followers = self
            .followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        followers.retain(|follower| follower.send(touched.clone()).is_ok());
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Picture) -> T) -> T {
        read(&self.picture.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a revision that this process has written.
    pub(super) fn record_written(&self, revision: Revision) {
        self.written.send_if_modified(|written| {
            let is_newer = *written < revision;
            *written = revision.max(*written);
            is_newer
        });
    }

    /// Whether the mirror reaches a revision in time.
    pub(super) async fn reaches(&self, revision: Revision) -> bool {
        let waited = tokio::time::timeout(PATIENCE, self.wait_for_revision(revision));
        waited.await.is_ok()
    }

    /// Whether the mirror is connected and has reached this process's earlier writes. Waits a while for it.
    pub(super) async fn has_own_writes(&self) -> bool {
        let written = *self.written.borrow();
        let has =
            |progress: &MirrorProgress| !progress.is_connected || progress.revision >= written;
        let mut progress = self.subscribe();
        let waited = tokio::time::timeout(PATIENCE, progress.wait_for(has)).await;
        matches!(waited, Ok(Ok(progress)) if progress.is_connected)
    }

    /// Applies changes up to a revision.
    pub(super) fn apply(&self, revision: Revision, changes: Vec<KeyChange>) {
        let mut picture = self.picture.write().unwrap_or_else(PoisonError::into_inner);
        let keys = picture.apply(revision, changes);
        self.notify_followers(&KeysTouched::These(keys));
        drop(picture);
        self.publish(revision);
    }

    /// Replaces the picture by a new list.
    pub(super) fn replace(&self, snapshot: Snapshot) {
        let revision = snapshot.revision;
        // This task is the only writer, so the picture cannot change in between.
        let next = self.read(|picture| picture.next(snapshot));
        let mut picture = self.picture.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *picture, next);
        self.notify_followers(&KeysTouched::All);
        drop(picture);
        // Dropping a large picture takes a while.
        drop(before);
        if revision < self.progress.borrow().revision {
            // This process's earlier writes will never arrive.
            self.written.send_replace(revision);
            self.progress.send_modify(|progress| progress.restores += 1);
        }
        self.publish(revision);
    }

    fn publish(&self, revision: Revision) {
        self.progress.send_modify(|progress| {
            progress.revision = revision;
            progress.is_connected = true;
        });
    }

    fn set_connected(&self, is_connected: bool) {
        self.progress.send_if_modified(|progress| {
            let is_new = progress.is_connected != is_connected;
            progress.is_connected = is_connected;
            is_new
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_written_here_is_waited_for_and_not_for_ever() {
        let mirror = Mirror::default();
        assert!(!mirror.has_own_writes().await, "nothing was listed");
        mirror.publish(5);
        assert!(mirror.has_own_writes().await);
        mirror.record_written(7);
        mirror.record_written(6); // of two that write at the same time
        assert!(!mirror.has_own_writes().await, "it does not come");
        let (has, ()) = tokio::join!(mirror.has_own_writes(), async { mirror.publish(7) });
        assert!(has);
        mirror.record_written(9);
        let (has, ()) = tokio::join!(mirror.has_own_writes(), async {
            mirror.set_connected(false);
        });
        assert!(!has, "there is nothing to wait for");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_restored_store_has_lost_is_not_waited_for() {
        let mirror = Mirror::default();
        mirror.replace(Snapshot::of(9, []));
        mirror.record_written(10);
        mirror.replace(Snapshot::of(9, []));
        assert!(!mirror.has_own_writes().await, "it may still come");
        mirror.replace(Snapshot::of(5, []));
        assert!(mirror.has_own_writes().await);
    }
}

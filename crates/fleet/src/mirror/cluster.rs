//! The input of decisions, built from the mirror for those who ask for a reason.

use std::sync::Arc;

use tokio::task::{JoinError, spawn_blocking};

use super::Mirror;
use crate::known_units;
use hyperfleet_fleet_model::schedule::Cluster;

/// A cluster, with the [inputs](super::Picture::inputs) that it was built from.
pub(super) type Built = tokio::sync::Mutex<Option<(u64, Arc<Cluster>)>>;

impl Mirror {
    /// The cluster as a leading engine sees it now. It is built once for all callers until a record changes that
    /// decisions depend on, because building takes time in proportion to the registry.
    ///
    /// # Errors
    /// The process ends.
    pub(crate) async fn cluster(self: &Arc<Self>) -> Result<Arc<Cluster>, JoinError> {
        let mut built = self.built.lock().await;
        let inputs = self.read(|picture| picture.inputs);
        if let Some((of, cluster)) = &*built
            && *of == inputs
        {
            return Ok(Arc::clone(cluster));
        }
        let mirror = Arc::clone(self);
        let (of, cluster) = spawn_blocking(move || {
            let (of, changes) = mirror.read(|picture| {
                let changes = known_units::changes(&picture.snapshot);
                (picture.inputs, changes)
            });
            (of, Arc::new(known_units::cluster(changes)))
        })
        .await?;
        *built = Some((of, Arc::clone(&cluster)));
        Ok(cluster)
    }
}

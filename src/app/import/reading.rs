//! Reads resources in batches that are small in memory, whatever the size of their specs.

use std::pin::pin;

use futures_util::TryStreamExt as _;
use tokio::sync::mpsc;

use super::{Error, texts};
use crate::domain::import::{ImportPlan, SourceResource};
use crate::storage::postgres::ImportSource;

/// Bytes of documents that end a batch, whatever its number of resources: three batches are in memory at a time.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// Reads the resources of the plan, and sends them in batches until the receiver is gone. No batch has resources of
/// two levels.
pub(super) async fn read(
    source: &mut ImportSource,
    plan: &ImportPlan,
    batch_max: usize,
    batches: mpsc::Sender<Vec<SourceResource>>,
) -> Result<(), Error> {
    let levels = plan.bring.iter();
    let ids = levels.flat_map(|level| level.chunks(batch_max).map(texts));
    let foreign_ids = plan.foreign_ids.chunks(batch_max).map(<[String]>::to_vec);
    for ids in ids.chain(foreign_ids) {
        let mut rows = pin!(source.resources(ids));
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.try_next().await.map_err(Error::Source)? {
            bytes += row.bytes();
            batch.push(row);
            if bytes >= BATCH_BYTES {
                bytes = 0;
                if batches.send(std::mem::take(&mut batch)).await.is_err() {
                    return Ok(());
                }
            }
        }
        if !batch.is_empty() && batches.send(batch).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

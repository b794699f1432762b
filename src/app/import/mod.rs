//! Imports the database of the older service.
//!
//! ```text
//! plan      keys of the source against those here           Ledger, ImportPlan
//! remove    resources that the source has removed            removal
//! bring     resources with their reports, batch by batch     reading, batches
//! link      references, once all targets are here            links
//! verify    digests of both databases                        verify
//! ```
//!
//! Each batch is one transaction together with the note of what it imported, so the next run continues an interrupted
//! one. A complete run saves the position in the source, so that a later run reads only what was written since.
//! Resources that were not imported are never written.

mod batches;
mod error;
mod links;
mod plan;
mod progress;
mod reading;
mod removal;
mod report;
mod verify;

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::storage::postgres::SourceSettings;
pub use error::Error;
pub use progress::{ImportProgress, ImportStep};
pub use report::{Difference, ImportReport, KindTally, Verification};

use crate::domain::import::{Continuity, Findings, Ledger, SourcePosition};
use crate::domain::{EntityRegistry, ResourceId};
use crate::storage::postgres::{ImportSource, ImportState, LeftOut, Session, Store};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Write nothing.
    pub is_dry_run: bool,
    pub read: ReadScope,
    /// Allow resources here that were not imported.
    pub is_beside_others: bool,
    /// Number of resources in one transaction.
    pub batch: usize,
    /// What is compared at the end.
    pub scope: VerifyScope,
}

/// What a run reads of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadScope {
    /// What was written since the last run.
    Changed,
    All,
    /// Everything, of a state that may lack what was imported before.
    Older,
}

/// What is compared at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyScope {
    /// Every imported resource.
    All,
    /// The resources that the run has written.
    Changed,
    Nothing,
}

struct Run<'a> {
    /// Holds the lock of imports. Every write uses this connection: if it breaks, the lock is gone, and so is every
    /// further write.
    session: Session,
    registry: &'a EntityRegistry,
    options: RunOptions,
    observe: &'a (dyn Fn(ImportProgress) + Sync),
    stop: &'a AtomicBool,
    ledger: Ledger,
    report: ImportReport,
    /// Imported resources that give up their names in this run.
    leaving: HashSet<ResourceId>,
    /// Resources that this run has written, or would write.
    brought: Vec<ResourceId>,
    /// Refused parts of those resources.
    left_out: LeftOut,
}

/// First transaction to read, for reading everything.
const EVERYTHING: i64 = 0;

/// How a run reports its progress, and how it is stopped.
#[derive(Clone, Copy)]
pub struct ImportHooks<'a> {
    /// Receives the progress of the run.
    pub observe: &'a (dyn Fn(ImportProgress) + Sync),
    /// When it is set, the run ends after the current batch.
    pub stop: &'a AtomicBool,
}

/// Imports what the source has and this database lacks.
///
/// # Guarantees
///
/// The source is only read, as of one moment. Resources that were not imported are never written. The next run
/// continues one that was interrupted at any moment.
///
/// # Errors
///
/// One of the two databases fails, or does not suit the other. Rows that break a rule are not errors: the report lists
/// them.
pub async fn import(
    source: &SourceSettings,
    store: &Store,
    registry: &EntityRegistry,
    options: RunOptions,
    hooks: ImportHooks<'_>,
) -> Result<ImportReport, Error> {
    let (mut source, missing) = ImportSource::open(source).await.map_err(Error::Source)?;
    if !missing.is_empty() {
        return Err(Error::NoSource { missing });
    }
    let position = source.position().await.map_err(Error::Source)?;
    let mut session = store.session().await?;
    let state = admit(&mut session, options).await?;
    let since = since(&position, &state, options)?;
    let imported = session.db().list_imported().await?;
    let run = Run {
        session,
        registry,
        options,
        observe: hooks.observe,
        stop: hooks.stop,
        ledger: Ledger::of(imported),
        report: ImportReport::of(options),
        leaving: HashSet::new(),
        brought: Vec::new(),
        left_out: LeftOut::default(),
    };
    // After an error the lock is held until the connection ends.
    run.run(&mut source, &position, since).await
}

/// Checks that this database may take the import, and locks out other imports.
async fn admit(session: &mut Session, options: RunOptions) -> Result<ImportState, Error> {
    let mut db = session.db();
    if !db.lock_imports().await? {
        return Err(Error::Busy);
    }
    let state = db.import_state().await?;
    if state.has_others && !options.is_beside_others {
        return Err(Error::OthersHere);
    }
    Ok(state)
}

/// Checks that the source has everything that was imported from it. Returns the first transaction to read; `None` if
/// nothing was imported.
fn since(
    position: &SourcePosition,
    state: &ImportState,
    options: RunOptions,
) -> Result<Option<i64>, Error> {
    let Some(before) = &state.position else {
        return Ok(None);
    };
    match (position.continuity(before), options.read) {
        (Continuity::Other, _) => Err(Error::OtherSource),
        // Transactions of another state have the same numbers.
        (_, ReadScope::Older) => Ok(Some(EVERYTHING)),
        (Continuity::Continued, _) => Ok(Some(before.since)),
        (Continuity::Regressed(why), _) => Err(Error::OlderSource(why)),
    }
}

impl Run<'_> {
    async fn run(
        mut self,
        source: &mut ImportSource,
        position: &SourcePosition,
        since: Option<i64>,
    ) -> Result<ImportReport, Error> {
        let plan = self.plan(source, since, position).await?;
        match plan.regression {
            Some(why) if self.options.read != ReadScope::Older => {
                return Err(Error::OlderSource(why));
            }
            _ => {}
        }
        let is_dry_run = self.options.is_dry_run;
        if !is_dry_run {
            // In a first run everything that arrives is as of this position.
            let since = since.unwrap_or(position.transaction);
            self.session
                .db()
                .save_import_position(position, since)
                .await?;
        }
        self.remove(&plan.remove).await?;
        let unlinked = self.bring(source, &plan).await?;
        self.link(source, &unlinked).await?;
        if !self.is_stopped() {
            self.find_orphans(source).await?;
        }
        if !is_dry_run && !self.is_stopped() {
            let since = position.transaction;
            self.session
                .db()
                .save_import_position(position, since)
                .await?;
        }
        self.verify(source).await?;
        self.session.db().unlock_imports().await?;
        self.report.is_interrupted = self.is_stopped();
        self.report.count(&self.ledger);
        Ok(self.report)
    }

    /// Sorts ids into the order in which requests lock resources.
    fn lock_order(&self, ids: impl Iterator<Item = ResourceId>) -> Vec<ResourceId> {
        let kind = |id| self.ledger.kind_of(id).unwrap_or_default();
        let order: BTreeSet<_> = ids.map(|id| (self.registry.depth(kind(id)), id)).collect();
        order.into_iter().map(|(_, id)| id).collect()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn findings(&mut self) -> &mut Findings {
        &mut self.report.findings
    }

    fn emit(&self, step: ImportStep, done: usize, total: usize) {
        (self.observe)(ImportProgress { step, done, total });
    }
}

/// Ids as the source spells them.
fn texts(ids: &[ResourceId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

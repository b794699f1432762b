//! Imports the database of the older service.
//!
//! ```text
//! plan      keys of the source against what is here           Ledger, ImportPlan
//! remove    what the source no longer has                     removal
//! bring     resources with their reports, batch by batch      batches
//! link      references, once all targets are here             links
//! verify    digests of both databases                         verify
//! ```
//!
//! Each batch is one transaction, together with the note of what it imported: an interrupted run is continued by the
//! next one. The position in the source is saved when a run is complete, so that a later run reads what was written
//! since. Nothing that was not imported is ever written.

mod batches;
mod error;
mod links;
mod plan;
mod progress;
mod removal;
mod report;
mod verify;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::storage::postgres::SourceSettings;
pub use error::Error;
pub use progress::{ImportProgress, ImportStep};
pub use report::{Difference, ImportReport, KindTally, Verification};

use crate::domain::import::{Findings, Ledger};
use crate::domain::{EntityRegistry, ResourceId};
use crate::storage::postgres::{ImportSource, ImportState, Session, SourcePosition, Store};

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Writes nothing.
    pub is_dry_run: bool,
    /// Brings what has not changed, too.
    pub is_full: bool,
    /// Imports into a database with resources of its own.
    pub is_beside_others: bool,
    /// Resources in one transaction.
    pub batch: usize,
    /// What is compared at the end.
    pub scope: VerifyScope,
}

/// What is compared at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyScope {
    /// Every imported resource.
    All,
    /// The resources that the run has brought.
    Changed,
    /// Nothing.
    Nothing,
}

/// A run from its begin to its end.
struct Run<'a> {
    source: ImportSource,
    store: &'a Store,
    registry: &'a EntityRegistry,
    options: RunOptions,
    observe: &'a (dyn Fn(ImportProgress) + Sync),
    stop: &'a AtomicBool,
    ledger: Ledger,
    report: ImportReport,
    /// Imported resources that give up their names in this run.
    leaving: HashSet<ResourceId>,
    /// Resources that were written by this run, or would be.
    brought: Vec<ResourceId>,
}

/// What a run tells while it works, and how it is stopped.
#[derive(Clone, Copy)]
pub struct ImportHooks<'a> {
    /// Is told how far the run is.
    pub observe: &'a (dyn Fn(ImportProgress) + Sync),
    /// Set, the run ends after the current batch.
    pub stop: &'a AtomicBool,
}

/// Imports what the source has and this database lacks.
///
/// # Guarantees
///
/// The source is only read, as of one moment. What was not imported is never written. Interrupted at any moment, the
/// next run goes on.
///
/// # Errors
///
/// One of the two databases fails, or cannot be what the other one needs. Rows that break a rule are no error: the
/// report lists them.
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
    let state = admit(&mut session, options, &position).await?;
    let imported = session.db().list_imported().await?;
    let run = Run {
        source,
        store,
        registry,
        options,
        observe: hooks.observe,
        stop: hooks.stop,
        ledger: Ledger::of(imported),
        report: ImportReport::of(options),
        leaving: HashSet::new(),
        brought: Vec::new(),
    };
    // The session holds the lock of imports. After an error it is held until the connection ends.
    let report = run.run(&mut session, &state, &position).await?;
    session.db().unlock_imports().await?;
    Ok(report)
}

/// Checks that this database may take the import, and keeps other imports away.
async fn admit(
    session: &mut Session,
    options: RunOptions,
    position: &SourcePosition,
) -> Result<ImportState, Error> {
    let mut db = session.db();
    if !db.lock_imports().await? {
        return Err(Error::Busy);
    }
    let state = db.import_state().await?;
    if state.has_others && !options.is_beside_others {
        return Err(Error::OthersHere);
    }
    match &state.position {
        Some(before) if before.source != position.source => Err(Error::OtherSource),
        _ => Ok(state),
    }
}

impl Run<'_> {
    async fn run(
        mut self,
        session: &mut Session,
        state: &ImportState,
        position: &SourcePosition,
    ) -> Result<ImportReport, Error> {
        let since = state.position.as_ref().map(|before| before.transaction);
        let plan = self.plan(since, position).await?;
        let is_dry_run = self.options.is_dry_run;
        if !is_dry_run && since.is_none() {
            // From now on rows are as of this position; what is not yet here is not in the ledger of the next run.
            session.db().save_import_position(position).await?;
        }
        self.remove(&plan.remove).await?;
        let unlinked = self.bring(&plan).await?;
        self.link(&unlinked).await?;
        if !is_dry_run && !self.is_stopped() {
            session.db().save_import_position(position).await?;
        }
        self.verify(session).await?;
        self.report.is_interrupted = self.is_stopped();
        self.report.count(&self.ledger);
        Ok(self.report)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn findings(&mut self) -> &mut Findings {
        &mut self.report.findings
    }

    fn tell(&self, step: ImportStep, done: usize, total: usize) {
        (self.observe)(ImportProgress { step, done, total });
    }
}

/// Ids as the source spells them.
fn texts(ids: &[ResourceId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

//! One pass over the source.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use super::error::Error;
use super::finding::{ImportFinding, ImportReason};
use super::plan::ImportPlan;
use super::progress::{ImportProgress, ImportStep};
use super::report::{Difference, ImportReport};
use super::row::{ReferenceRow, ResourceRow};
use super::source::Source;
use super::target::{ImportTarget, Standing};
use super::translate::{ImportedResource, check_reference, translate};
use hyperfleet_domain::{EntityRegistry, ResourceId};

/// Bytes of documents that end a batch, whatever its number of resources.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The connections to both databases. Must not be printed: they contain passwords.
pub struct Databases {
    /// The older service's.
    pub source: PgConnectOptions,
    /// This service's.
    pub target: PgConnectOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassOptions {
    /// Write nothing.
    pub is_dry_run: bool,
    /// Number of resources in one transaction.
    pub batch: usize,
}

/// How a pass reports its progress, and how it is stopped.
#[derive(Clone, Copy)]
pub struct ImportHooks<'a> {
    pub observe: &'a (dyn Fn(ImportProgress) + Sync),
    /// When it is set, the pass ends after the current batch.
    pub stop: &'a AtomicBool,
}

struct Pass<'a> {
    target: ImportTarget,
    registry: &'a EntityRegistry,
    options: PassOptions,
    hooks: ImportHooks<'a>,
    plan: ImportPlan<'a>,
    report: ImportReport,
    written: HashSet<ResourceId>,
    /// Resources that were read, for the comparison at the end.
    read: Vec<ResourceId>,
    /// Resources that have, or had, references.
    unlinked: Vec<ResourceId>,
    /// Resources with refused reports or references.
    incomplete: HashSet<ResourceId>,
}

/// Makes this service's database equal to the source, in everything that earlier passes or this one imported.
///
/// # Guarantees
///
/// The source is only read, as of one moment. A pass without differences writes nothing. Resources that were not
/// imported, or were changed here since, are never written. An interrupted pass leaves a state that the next one
/// continues from.
///
/// # Errors
///
/// One of the two databases fails, or does not suit the other. Rows that break a rule are not errors: the report lists
/// them.
pub async fn import(
    databases: &Databases,
    registry: &EntityRegistry,
    options: PassOptions,
    hooks: ImportHooks<'_>,
) -> Result<ImportReport, Error> {
    // The target first: its lock lets no other import run, which might have read the source later.
    let mut target = ImportTarget::open(&databases.target).await?;
    let mut source = Source::open(&databases.source).await?;
    let pass = Pass {
        plan: target.list_imported(registry).await?,
        target,
        registry,
        options,
        hooks,
        report: ImportReport {
            dry_run: options.is_dry_run,
            ..ImportReport::default()
        },
        written: HashSet::new(),
        read: Vec::new(),
        unlinked: Vec::new(),
        incomplete: HashSet::new(),
    };
    pass.run(&mut source).await
}

impl Pass<'_> {
    async fn run(mut self, source: &mut Source) -> Result<ImportReport, Error> {
        self.list(source).await?;
        self.remove().await?;
        self.bring(source).await?;
        self.report.unchanged = self.report.verification.equal;
        self.link(source).await?;
        self.verify(source).await?;
        self.report.interrupted = self.is_stopped();
        self.report.changed = self.written.len() - self.report.added;
        self.report.verification.incomplete = self.incomplete.len();
        for (kind, count) in self.plan.counts() {
            self.report.kind(kind).imported = count;
        }
        self.target.unlock().await;
        Ok(self.report)
    }

    /// Lists the source, to know what vanished and in which order to import the rest.
    async fn list(&mut self, source: &mut Source) -> Result<(), Error> {
        let (plan, report) = (&mut self.plan, &mut self.report);
        let keys = source.each_key(|key, name| {
            report.kind(key.kind).source += 1;
            if let Err(refusal) = plan.push(key) {
                report.refuse(refusal.of(key.kind, &key.id, name));
            }
        });
        keys.await?;
        source.each_orphan(|finding| report.push(finding)).await?;
        if !plan.fits_source() {
            return Err(Error::OtherSource);
        }
        let total = report.kinds.values().map(|kind| kind.source).sum();
        self.emit(ImportStep::List, total, total);
        Ok(())
    }

    /// Removes resources that the source no longer has, children first.
    async fn remove(&mut self) -> Result<(), Error> {
        let vanished = self.plan.vanished(self.options.batch);
        let total = vanished.iter().map(Vec::len).sum();
        for ids in &vanished {
            if self.is_stopped() {
                break;
            }
            let removed = if self.options.is_dry_run {
                ids.iter().copied().collect()
            } else {
                self.target.remove(ids).await?
            };
            for id in ids {
                if removed.contains(id) {
                    self.plan.add(*id, None, false);
                    self.report.removed += 1;
                } else {
                    let kind = self.plan.kind_of(*id).unwrap_or_default();
                    self.report.push(ImportReason::NeededHere.of(kind, id, ""));
                }
            }
            self.emit(ImportStep::Remove, self.report.removed, total);
        }
        Ok(())
    }

    /// Imports resources with their reports, parents first.
    async fn bring(&mut self, source: &mut Source) -> Result<(), Error> {
        let batches = self.plan.take_batches(self.options.batch);
        let (mut done, total) = (0, batches.iter().map(Vec::len).sum());
        for ids in &batches {
            if self.is_stopped() {
                break;
            }
            let known = ids.iter().copied().filter(|id| self.plan.has(*id));
            let known: Vec<_> = known.collect();
            let (there, here) =
                tokio::join!(source.digests(&known), self.target.list_standings(ids));
            let changed = self.compare(ids, &there?, &here?);
            let changed: Vec<_> = changed.iter().map(|difference| difference.id).collect();
            let mut rows = pin!(source.resources(&changed));
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.try_next().await? {
                bytes += row.bytes();
                batch.push(row);
                if bytes >= BATCH_BYTES {
                    self.bring_batch(std::mem::take(&mut batch)).await?;
                    bytes = 0;
                }
            }
            self.bring_batch(batch).await?;
            done += ids.len();
            self.emit(ImportStep::Import, done, total);
        }
        Ok(())
    }

    /// Compares resources by their digests. Returns the differing resources, and reports resources that must not be
    /// changed.
    fn compare(
        &mut self,
        ids: &[ResourceId],
        there: &HashMap<ResourceId, Uuid>,
        here: &HashMap<ResourceId, Standing>,
    ) -> Vec<Difference> {
        let mut changed = Vec::new();
        for id in ids {
            let (there, here) = (there.get(id).copied(), here.get(id));
            let digest = here.map(|here| here.digest);
            match here {
                Some(here) if here.is_as_imported.is_none() => {
                    self.report
                        .refuse(ImportReason::IdTaken.of(&here.kind, id, &here.name));
                }
                Some(_) if there == digest => self.report.verification.add(there, digest),
                Some(here) if here.is_as_imported == Some(false) => {
                    self.report
                        .refuse(ImportReason::ChangedHere.of(&here.kind, id, &here.name));
                }
                _ => changed.push(Difference {
                    kind: self.plan.kind_of(*id).unwrap_or_default().to_owned(),
                    id: *id,
                    source: there,
                    target: digest,
                }),
            }
        }
        changed
    }

    /// Translates and writes a batch. One that conflicts with requests is repeated.
    async fn bring_batch(&mut self, rows: Vec<ResourceRow>) -> Result<(), Error> {
        let mut sound = Vec::with_capacity(rows.len());
        for row in rows {
            let (kind, id, name) = (row.kind.clone(), row.id.clone(), row.name.clone());
            match translate(self.registry, row, |id| self.plan.kind_of(id)) {
                Ok(resource) => sound.push(resource),
                Err(refusal) => self.report.refuse(refusal.of(&kind, &id, &name)),
            }
        }
        match self.save(&sound).await {
            // A name is taken, or a request interfered. Each resource separately shows which.
            Err(error) if error.is_conflict() => {
                for resource in sound {
                    match self.save(slice::from_ref(&resource)).await {
                        Err(error) if error.is_name_taken() => {
                            let ResourceRow { kind, id, name, .. } = &resource.row;
                            self.report
                                .refuse(ImportReason::NameTaken.of(kind, id, name));
                        }
                        written => self.record(resource, &written?),
                    }
                }
            }
            written => {
                let written = written?;
                for resource in sound {
                    self.record(resource, &written);
                }
            }
        }
        Ok(())
    }

    async fn save(&mut self, sound: &[ImportedResource]) -> Result<HashSet<ResourceId>, Error> {
        if self.options.is_dry_run || sound.is_empty() {
            return Ok(sound.iter().map(|resource| resource.id).collect());
        }
        self.target.save_resources(sound).await
    }

    /// Counts what was written, and names what was refused of it.
    fn record(&mut self, resource: ImportedResource, written: &HashSet<ResourceId>) {
        let (id, kind, name) = (resource.id, &resource.row.kind, &resource.row.name);
        let is_known = self.plan.has(id);
        if written.contains(&id) {
            self.written.insert(id);
            self.plan.add(id, Some(kind), true);
            self.report.added += usize::from(!is_known);
            self.report.reports += resource.row.reports.len();
        }
        self.read.push(id);
        if is_known || resource.row.has_references {
            self.unlinked.push(id);
        }
        for (adapter, why) in resource.refused_reports {
            self.incomplete.insert(id);
            let finding = ImportReason::Report.because(why).of(kind, &id, name);
            let adapter = Some(adapter);
            self.report.push(ImportFinding { adapter, ..finding });
        }
        if let Some(refusal) = resource.href {
            self.report.push(refusal.of(kind, &id, name));
        }
    }

    /// Writes references, once all targets are here.
    async fn link(&mut self, source: &mut Source) -> Result<(), Error> {
        let unlinked = std::mem::take(&mut self.unlinked);
        let mut done = 0;
        for ids in unlinked.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            let mut references = source.references(ids).await?;
            references.retain(|row| self.accepts(row));
            let of = |row: &ReferenceRow| ResourceId::from(row.source_id);
            let written = if self.options.is_dry_run {
                references.iter().map(of).collect()
            } else {
                self.target.save_references(ids, &references).await?
            };
            let written_references = references.iter().filter(|row| written.contains(&of(row)));
            self.report.references += written_references.count();
            self.written.extend(written);
            done += ids.len();
            self.emit(ImportStep::Link, done, unlinked.len());
        }
        Ok(())
    }

    /// Whether a reference passes the rules. Names one that does not.
    fn accepts(&mut self, row: &ReferenceRow) -> bool {
        let id = row.source_id.into();
        let kind = self.plan.kind_of(id).unwrap_or_default();
        let checked = check_reference(self.registry, kind, row, |id| self.plan.kind_of(id));
        let Err(reason) = checked else { return true };
        self.report.push(ImportFinding {
            ref_type: Some(row.ref_type.clone()),
            target: Some(row.target_id.clone()),
            ..reason.of(kind, &id, "")
        });
        self.incomplete.insert(id);
        false
    }

    /// Compares what was read once more, except resources with refused parts.
    async fn verify(&mut self, source: &mut Source) -> Result<(), Error> {
        let mut read = std::mem::take(&mut self.read);
        read.retain(|id| !self.options.is_dry_run && !self.incomplete.contains(id));
        let mut done = 0;
        for ids in read.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            let (there, here) = tokio::join!(source.digests(ids), self.target.list_standings(ids));
            for difference in self.compare(ids, &there?, &here?) {
                self.report.verification.differ(difference);
            }
            done += ids.len();
            self.emit(ImportStep::Compare, done, read.len());
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.hooks.stop.load(Ordering::Relaxed)
    }

    fn emit(&self, step: ImportStep, done: usize, total: usize) {
        (self.hooks.observe)(ImportProgress { step, done, total });
    }
}

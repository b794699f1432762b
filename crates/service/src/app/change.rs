//! Changes of resources: one way for all of them, whatever the command and the mode.
//!
//! ```text
//! Plain        ─▶ attempt, without a transaction ─┬─▶ done
//!                                                 └─▶ BEGIN ─▶ apply ─▶ COMMIT
//! Keyed(key)   ─▶ BEGIN ─▶ claim the key ─┬─▶ apply ─▶ store the answer with the key ─▶ COMMIT
//!                                         └─▶ carried out before: give its answer
//! DryRun(key?) ─▶ BEGIN ─▶ claim the key ─▶ apply ─▶ plan ─▶ ROLLBACK
//! ```
//!
//! A key, its change and its answer are one transaction. A refused request is rolled back with its key, so that a
//! repetition is judged again (`docs/decisions/0073-idempotency-keys.md`). A dry run has the statements of the change
//! itself, so the database refuses what it would refuse (`docs/decisions/0075-dry-run.md`).

use super::command::{Applied, Author, ChangeAnswer, Command, Mode, WriteAnswer};
use super::deletion::{Deletion, ForcedDeletion};
use super::effects::Effects;
use super::reports::Reporting;
use super::resources::{Creation, Patching};
use super::{Error, Service};
use hyperfleet_domain::dry_run::DryRunPlan;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_storage::{Turn, Tx};

/// A command whose parts have been checked, except for what needs its rows.
enum Prepared<'a> {
    Create(Creation<'a>),
    Patch(Patching<'a>),
    Delete(Deletion<'a>),
    ForceDelete(ForcedDeletion<'a>),
    Report(Reporting<'a>),
}

impl Service {
    /// Carries out a command. The only way to change a resource.
    pub async fn change(
        &self,
        command: Command<'_>,
        author: Author<'_>,
        mode: Mode<'_>,
        write: WriteAnswer<'_>,
    ) -> Result<ChangeAnswer, Error> {
        let mut command = self.prepared(command, author, mode).await?;
        if let Mode::Plain = mode
            && let Some(applied) = self.attempt(&mut command).await?
        {
            let (answer, warning) = (write(&applied.result), applied.result.warning());
            applied.effects().emit();
            return Ok(ChangeAnswer {
                answer: answer.map_err(Error::Answer)?,
                is_replayed: false,
                plan: None,
                warning,
            });
        }
        self.in_turns(async |turn| {
            self.change_in_transaction(&mut command, author, mode, (write, turn))
                .await
        })
        .await
    }

    async fn prepared<'a>(
        &self,
        command: Command<'a>,
        author: Author<'a>,
        mode: Mode<'_>,
    ) -> Result<Prepared<'a>, Error> {
        let origin = author.origin;
        Ok(match command {
            Command::Create {
                entity,
                parent,
                new,
            } => Prepared::Create(self.prepare(entity, parent, new, author).await?),
            Command::Patch {
                path,
                patch,
                conditions,
            } => Prepared::Patch(match path.scope() {
                None => return Err(self.missing(path).await),
                Some(scope) => Patching {
                    path,
                    scope,
                    patch,
                    conditions,
                    origin,
                },
            }),
            Command::Delete { path, conditions } => Prepared::Delete(Deletion {
                path,
                conditions,
                origin,
                found: None,
            }),
            Command::ForceDelete {
                path,
                reason,
                conditions,
            } => Prepared::ForceDelete(ForcedDeletion {
                path,
                reason,
                conditions,
                origin,
            }),
            Command::Report { path, report } => Prepared::Report(Reporting {
                path,
                scope: path.scope().ok_or_else(|| path.not_found())?,
                sent: report,
                origin,
                is_dry_run: mode.is_dry_run(),
                completes: false,
            }),
        })
    }

    /// Makes a change without a transaction. Returns `None` if it needs one.
    async fn attempt(&self, command: &mut Prepared<'_>) -> Result<Option<Applied>, Error> {
        match command {
            Prepared::Create(creation) => self.attempt_create(creation).await,
            Prepared::Patch(patching) => self.attempt_patch(patching).await,
            Prepared::Delete(deletion) => self.attempt_delete(deletion).await,
            Prepared::ForceDelete(_) => Ok(None),
            Prepared::Report(reporting) => self.attempt_report(reporting).await,
        }
    }

    /// Makes a change within a transaction.
    async fn apply(&self, tx: &mut Tx, command: &mut Prepared<'_>) -> Result<Applied, Error> {
        match command {
            Prepared::Create(creation) => self.create_in(tx, creation).await,
            Prepared::Patch(patching) => self.patch_in(tx, patching).await,
            Prepared::Delete(deletion) => self.delete_in(tx, deletion).await,
            Prepared::ForceDelete(forced) => self.force_delete_in(tx, forced).await,
            Prepared::Report(reporting) => self.report_in(tx, reporting).await,
        }
    }

    async fn change_in_transaction(
        &self,
        command: &mut Prepared<'_>,
        author: Author<'_>,
        mode: Mode<'_>,
        (write, turn): (WriteAnswer<'_>, Turn),
    ) -> Result<ChangeAnswer, Error> {
        let mut tx = self.store.begin_change(turn).await?;
        let changed = self
            .change_in(&mut tx, command, author, (mode, write))
            .await;
        if mode.is_dry_run() {
            tx.roll_back().await;
            return changed.map(|(answer, _)| answer);
        }
        let (answer, effects) = match changed {
            Ok(changed) => changed,
            Err(error) => return tx.finish(Err(error)).await,
        };
        match tx.finish(Ok::<_, Error>(())).await {
            Ok(()) => effects.emit(),
            Err(error) => {
                effects.end_unknown();
                return Err(error);
            }
        }
        Ok(answer)
    }

    async fn change_in(
        &self,
        tx: &mut Tx,
        command: &mut Prepared<'_>,
        author: Author<'_>,
        (mode, write): (Mode<'_>, WriteAnswer<'_>),
    ) -> Result<(ChangeAnswer, Effects), Error> {
        if let Some(key) = mode.key()
            && let Some(answer) = self.claim(tx, key).await?
        {
            let replayed = ChangeAnswer {
                answer,
                is_replayed: true,
                // The request has already been completed, so it would do nothing.
                plan: mode.is_dry_run().then(DryRunPlan::default),
                warning: None,
            };
            return Ok((replayed, Effects::default()));
        }
        let applied = self.apply(tx, command).await?;
        let answer = write(&applied.result).map_err(Error::Answer)?;
        let mut plan = None;
        match mode {
            Mode::Plain => {}
            Mode::Keyed(key) => tx.db().store_answer(key, &answer).await?,
            Mode::DryRun(_) => plan = Some(self.plan(tx, author, &applied).await?),
        }
        let answer = ChangeAnswer {
            answer,
            is_replayed: false,
            plan,
            warning: applied.result.warning(),
        };
        Ok((answer, applied.effects()))
    }

    /// The part of what a change does that the caller sees.
    async fn plan(
        &self,
        tx: &mut Tx,
        author: Author<'_>,
        applied: &Applied,
    ) -> Result<DryRunPlan, Error> {
        let mut plan = DryRunPlan::of(&applied.before, &applied.outcome, &self.registry);
        let tenants = author.tenant.tenants();
        if *tenants != TenantScope::ALL {
            let ids: Vec<_> = plan.ids().into_iter().collect();
            let seen = tx.db().list_seen(tenants, &ids, author.origin).await?;
            plan.limit_to(&seen);
        }
        Ok(plan)
    }
}

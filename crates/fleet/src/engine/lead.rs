//! A term: take in what has changed, decide, carry out, over and over.
//!
//! A plan is carried out in portions, and between two of them changes are taken in. If they may have made it wrong,
//! the rest of it is forgotten and decided anew. Before anything is decided, the watch has told all that was written
//! before: what is known is the store's order of events, never our guess of it.

use std::fmt;

use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::decider::{Agenda, Decider, Decision};
use super::outage::Part;
use super::term::Term;
use super::{Engine, Stopping, VERSION, telemetry};
use crate::keys::{KeyStore, Revision};
use crate::registry::{Error, Scope, Step, Told, Watch, Written};
use futures_util::FutureExt as _;

/// Why a term ends.
#[derive(Debug)]
pub(super) enum End {
    /// The engine is to stop.
    Stopped,
    /// Another leads, or the lease could not be kept.
    Deposed,
    /// A newer engine wants to lead.
    Outranked,
    /// What became of a write is not known, or the registry could not be read.
    Failed(Error),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "the engine stops",
            Self::Deposed => "the lease is lost",
            Self::Outranked => "a newer engine has come",
            Self::Failed(_) => "the registry failed",
        })
    }
}

/// The work of one term.
struct Lead<'a, S: KeyStore> {
    engine: &'a Engine<S>,
    term: &'a Term,
    stopping: &'a Stopping,
    decider: Decider,
    watch: Watch<S>,
    /// When to ask a watch again that has failed.
    watch_rests_until: Option<Instant>,
    /// Everything up to here was taken in.
    seen: Revision,
    /// How often something was.
    news: u64,
    /// The last of what was written.
    written: Revision,
    agenda: Agenda,
    pass: Option<telemetry::Pass>,
    /// What `news` was when the agenda was made.
    decided_at: u64,
    /// After a stale step: nothing is decided before something was told since, for what made it stale is among what
    /// was not; or before this time.
    stale_until: Option<Instant>,
    ticks: Interval,
}

impl<S: KeyStore> Engine<S> {
    /// Decides until the term ends.
    pub(super) async fn lead(&self, term: &Term, stopping: &Stopping) -> End {
        let begun = Instant::now();
        match Lead::begin(self, term, stopping).await {
            Ok(mut lead) => {
                let seconds = begun.elapsed().as_secs_f64();
                tracing::info!(seconds, "the engine has read its registry");
                match lead.work().await {
                    Ok(end) => end,
                    Err(Error::Deposed) => End::Deposed,
                    Err(error) => End::Failed(error),
                }
            }
            Err(error) => End::Failed(error),
        }
    }
}

impl<'a, S: KeyStore> Lead<'a, S> {
    async fn begin(
        engine: &'a Engine<S>,
        term: &'a Term,
        stopping: &'a Stopping,
    ) -> Result<Self, Error> {
        let (found, revision) = loop {
            match engine.registry.list(&Scope::Everything).await {
                Err(Error::Compacted) => {}
                listed => break listed?,
            }
        };
        let mut decider = Decider::new(term.leading.epoch);
        decider.extend(found);
        let mut ticks = tokio::time::interval(engine.settings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            watch: engine.registry.watch(&Scope::Everything, revision)?,
            engine,
            term,
            stopping,
            decider,
            watch_rests_until: None,
            seen: revision,
            news: 0,
            written: 0,
            agenda: Agenda::default(),
            pass: None,
            decided_at: 0,
            stale_until: None,
            ticks,
        })
    }

    async fn work(&mut self) -> Result<End, Error> {
        loop {
            self.take_in_what_is_there();
            if let Some(end) = self.end() {
                return Ok(end);
            }
            self.decider
                .await_machines(self.term.contact.excuses_machines());
            if self.decider.is_outdated() || self.agenda.is_empty() {
                if self.is_behind() {
                    self.wait().await;
                    continue;
                }
                self.decide();
            }
            let portion = self.agenda.portion();
            if !portion.is_empty() {
                self.carry_out(&portion).await?;
                continue;
            }
            self.engine.outages.is_well(Part::Work);
            match self.decider.explain() {
                Some(slice) if !slice.is_empty() => self.carry_out(&slice).await?,
                // Others may have waited for the thread meanwhile.
                Some(_) => tokio::task::yield_now().await,
                None => self.wait().await,
            }
        }
    }

    fn end(&self) -> Option<End> {
        if self.stopping.is_due() {
            Some(End::Stopped)
        } else if self.term.is_over() || self.decider.is_deposed() {
            Some(End::Deposed)
        } else if self.decider.newest_version() > VERSION {
            Some(End::Outranked)
        } else {
            None
        }
    }

    /// Whether something is under way to us that has to be known before anything is decided.
    fn is_behind(&self) -> bool {
        let is_new = self.news > self.decided_at;
        let is_waited_for = |until: Instant| !is_new && Instant::now() < until;
        self.seen < self.written || self.stale_until.is_some_and(is_waited_for)
    }

    fn decide(&mut self) {
        self.stale_until = None;
        self.decided_at = self.news;
        self.pass = None; // It tells what it did.
        let begun = Instant::now();
        self.agenda = self.decider.decide();
        self.tell_foreign();
        if !self.agenda.is_empty() {
            self.pass = Some(telemetry::Pass::begin(begun, self.agenda.len()));
        }
        self.set_gauges();
    }

    /// Tells of keys that are not ours to read, each once in a term.
    fn tell_foreign(&mut self) {
        let foreign = self.decider.foreign_new();
        let name = |(key, version)| (self.engine.registry.name(&key), version);
        telemetry::left_alone(foreign.into_iter().map(name), self.decider.unknown_new());
    }

    async fn carry_out(&mut self, decisions: &[Decision]) -> Result<(), Error> {
        let steps: Vec<_> = decisions.iter().map(|next| next.step.clone()).collect();
        let carried = self.write(&steps).await?;
        self.term.contact.answered();
        self.engine.outages.is_well(Part::Work);
        let mut is_stale = false;
        for (decision, carried) in decisions.iter().zip(&carried) {
            match carried {
                // What takes back a reason that is gone already changes nothing, and no watch will tell its revision.
                Written::At(_) if matches!(decision.step, Step::Unexplain { .. }) => {}
                Written::At(revision) => self.written = self.written.max(*revision),
                Written::Stale => is_stale = true,
            }
            telemetry::carried(decision, *carried, self.pass.as_mut());
        }
        if is_stale {
            self.agenda = Agenda::default();
            self.stale_until = Some(Instant::now() + self.engine.settings.interval);
        }
        if self.agenda.is_empty() {
            self.pass = None;
        }
        Ok(())
    }

    /// Writes steps, and takes in what is told meanwhile.
    async fn write(&mut self, steps: &[Step]) -> Result<Vec<Written>, Error> {
        let (registry, term) = (&self.engine.registry, self.term);
        let carried = registry.carry_out(&term.leading, steps);
        tokio::pin!(carried);
        loop {
            let is_told = !self.watch_rests();
            tokio::select! {
                biased;
                carried = &mut carried => return carried,
                told = self.watch.next(), if is_told => self.take_in(told),
            }
        }
    }

    /// Whether a watch that has failed is not to be asked yet.
    fn watch_rests(&self) -> bool {
        self.watch_rests_until
            .is_some_and(|until| Instant::now() < until)
    }

    /// Takes in what was told already, without waiting for more.
    fn take_in_what_is_there(&mut self) {
        while !self.watch_rests()
            && let Some(told) = self.watch.next().now_or_never()
        {
            self.take_in(told);
        }
    }

    fn take_in(&mut self, told: Result<Told, Error>) {
        self.watch_rests_until = None;
        if told.is_ok() {
            self.term.contact.answered();
        }
        match told {
            Ok(Told::Changes { revision, changes }) => {
                self.engine.outages.is_well(Part::Watch);
                self.seen = self.seen.max(revision);
                self.news += 1;
                self.decider.extend(changes);
            }
            Ok(Told::Relisted { revision, found }) => {
                self.engine.outages.is_well(Part::Watch);
                self.seen = revision;
                self.news += 1;
                self.tell_foreign();
                let mut decider = Decider::new(self.term.leading.epoch);
                decider.extend(found);
                decider.was_told(&self.decider);
                self.decider = decider;
            }
            Err(error) => {
                let pause = self.engine.outages.failed(Part::Watch, &error);
                self.watch_rests_until = Some(Instant::now() + pause);
            }
        }
    }

    /// Waits until something is told, or it is time to look without cause.
    async fn wait(&mut self) {
        let rest = self.watch_rests_until;
        let told = async {
            if let Some(until) = rest {
                tokio::time::sleep_until(until).await;
            }
            self.watch.next().await
        };
        tokio::select! {
            told = told => self.take_in(told),
            _ = self.ticks.tick() => {
                self.decider.tick();
                self.set_gauges();
            }
            () = self.term.end() => {}
            () = self.stopping.due() => {}
        }
    }

    fn set_gauges(&self) {
        telemetry::set_gauges(self.decider.unplaced_count(), self.decider.foreign_count());
    }
}

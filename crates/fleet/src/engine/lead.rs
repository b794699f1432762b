//! One term as leader: take in changes, decide, carry out, repeat.
//!
//! A plan is carried out in portions, and changes are applied between them. If a change may invalidate the plan, the
//! rest of it is discarded and decided again. Every decision waits until the mirror has all earlier writes, so
//! decisions follow the order of events in the store, never a guess about it.

use std::fmt;

use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::decider::{Agenda, Decider};
use super::outage::Part;
use super::term::Term;
use super::{Engine, Stopping, VERSION, telemetry};
use crate::keys::{KeyStore, Revision};
use crate::registry::{Error, Step, Written};

#[derive(Debug)]
pub(super) enum End {
    Stopped,
    /// Another engine leads, or the lease could not be renewed.
    Deposed,
    /// A newer engine wants to lead.
    Outranked,
    /// etcd was restored: earlier reads and writes are void.
    Restored,
    /// The result of a write is unknown, or the registry could not be read.
    Failed(Error),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "the engine stops",
            Self::Deposed => "the lease is lost",
            Self::Outranked => "a newer engine has come",
            Self::Restored => "etcd was restored",
            Self::Failed(_) => "the registry failed",
        })
    }
}

struct Lead<'a, S: KeyStore> {
    engine: &'a Engine<S>,
    term: &'a Term,
    stopping: &'a Stopping,
    decider: Decider,
    /// Revision of the last write.
    written: Revision,
    /// How often etcd had been restored before the term.
    restores: u32,
    agenda: Agenda,
    pass: Option<telemetry::Pass>,
    /// How many keys had been touched when the agenda was made.
    decided_at: u64,
    /// Set after a stale step: the events that made it stale must arrive before the next decision, at the
    /// latest by this time.
    stale_until: Option<Instant>,
    ticks: Interval,
}

impl<S: KeyStore> Engine<S> {
    /// Leads until the term ends.
    pub(super) async fn lead(&self, term: &Term, stopping: &Stopping) -> End {
        let begun = Instant::now();
        let led = match Lead::begin(self, term, stopping).await {
            Ok(mut lead) => {
                let seconds = begun.elapsed().as_secs_f64();
                tracing::info!(seconds, "registry loaded");
                lead.serve().await
            }
            Err(error) => Err(error),
        };
        match led {
            Ok(end) => end,
            Err(Error::Deposed) => End::Deposed,
            Err(error) => End::Failed(error),
        }
    }
}

impl<'a, S: KeyStore> Lead<'a, S> {
    /// Waits until the mirror has reached the start of the term.
    async fn begin(
        engine: &'a Engine<S>,
        term: &'a Term,
        stopping: &'a Stopping,
    ) -> Result<Self, Error> {
        let epoch = term.leading.epoch;
        tokio::select! {
            reached = engine.mirror_reaches(epoch, stopping) => reached?,
            () = term.end() => return Err(Error::Deposed),
        }
        let decider = Decider::new(epoch, &engine.fleet.mirror);
        let mut ticks = tokio::time::interval(engine.settings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            engine,
            term,
            stopping,
            decider,
            written: 0,
            restores: engine.fleet.mirror.restores(),
            agenda: Agenda::default(),
            pass: None,
            decided_at: 0,
            stale_until: None,
            ticks,
        })
    }

    async fn serve(&mut self) -> Result<End, Error> {
        let registry = &self.engine.fleet.registry;
        registry.remove_reasons(&self.term.leading).await?;
        self.work().await
    }

    async fn work(&mut self) -> Result<End, Error> {
        loop {
            if self.decider.apply_touched() {
                self.term.contact.answered();
            }
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
            self.wait().await;
        }
    }

    fn end(&self) -> Option<End> {
        if self.stopping.is_due() {
            Some(End::Stopped)
        } else if self.term.is_over() || self.decider.is_deposed() {
            Some(End::Deposed)
        } else if self.engine.fleet.mirror.restores() != self.restores {
            Some(End::Restored)
        } else if self.decider.newest_version() > VERSION {
            Some(End::Outranked)
        } else {
            None
        }
    }

    /// Whether events are on their way that must be known before a decision.
    fn is_behind(&self) -> bool {
        let is_new = self.decider.touch_count() > self.decided_at;
        let is_waited_for = |until: Instant| !is_new && Instant::now() < until;
        self.decider.revision() < self.written || self.stale_until.is_some_and(is_waited_for)
    }

    fn decide(&mut self) {
        self.stale_until = None;
        self.decided_at = self.decider.touch_count();
        self.pass = None; // It tells what it did.
        let begun = Instant::now();
        self.agenda = self.decider.decide();
        self.log_unreadable();
        if !self.agenda.is_empty() {
            self.pass = Some(telemetry::Pass::begin(begun, self.agenda.len()));
        }
        self.set_gauges();
    }

    /// Logs unreadable keys, each once per term.
    fn log_unreadable(&mut self) {
        let (keys, unknown) = self.decider.left_alone();
        let name = |(key, version)| (self.engine.fleet.registry.name(&key), version);
        telemetry::left_alone(keys.into_iter().map(name), unknown);
    }

    async fn carry_out(&mut self, steps: &[Step]) -> Result<(), Error> {
        let carried = self.write(steps).await?;
        self.term.contact.answered();
        self.engine.outages.is_well(Part::Work);
        let mut is_stale = false;
        for (step, carried) in steps.iter().zip(&carried) {
            match carried {
                Written::At(revision) => self.written = self.written.max(*revision),
                Written::Stale => is_stale = true,
            }
            telemetry::carried(step, *carried, self.pass.as_mut());
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

    /// Writes steps, and takes in changes meanwhile.
    async fn write(&mut self, steps: &[Step]) -> Result<Vec<Written>, Error> {
        let (registry, term) = (&self.engine.fleet.registry, self.term);
        let carried = registry.carry_out(&term.leading, steps);
        tokio::pin!(carried);
        loop {
            tokio::select! {
                biased;
                carried = &mut carried => return carried,
                () = self.decider.next() => term.contact.answered(),
            }
        }
    }

    /// Waits for events or for the next check without a cause.
    async fn wait(&mut self) {
        tokio::select! {
            () = self.decider.next() => self.term.contact.answered(),
            _ = self.ticks.tick() => self.set_gauges(),
            () = self.term.end() => {}
            () = self.stopping.due() => {}
        }
    }

    fn set_gauges(&self) {
        let clock = self.engine.clock.as_ref();
        let clock = clock.filter(|_| !self.is_behind());
        telemetry::set_gauges(&telemetry::ClusterGauges {
            machines: self.decider.machine_count(),
            unplaced: self.decider.unplaced_count(),
            left_alone: self.decider.left_alone_count(),
            decided_at: clock.map(|clock| clock.now().timestamp()),
        });
    }
}

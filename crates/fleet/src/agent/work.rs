//! The agent's main loop.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::disk::{Disk, History, StateFile};
use super::duties::{self, Duties, Files, Orders, Progress, ScopeUpdate};
use super::keeper::{MachineLease, RegistrationKeeper};
use super::kept_registration::KeptRegistration;
use super::systemd::{Connect, Error};
use super::units::Units;
use super::{Agent, Leave, hand_over, telemetry};
use crate::keys::{KeyStore, Revision};
use crate::registry::{self, BriefDrain, Key, MachineRecord, Registration, Reports};
use hyperfleet_fleet_model::schedule::{self, MachineId};
use hyperfleet_fleet_model::unit::{DesiredState, Options};
use hyperfleet_server_kit::causes::chain;

/// How long signals are collected before states are read: one start or stop causes several.
const GATHERING: Duration = Duration::from_millis(20);
/// How often everything is checked without a cause.
const LOOK_PAUSE: Duration = Duration::from_mins(1);
/// Pause before the registry or systemd is tried again.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long an agent that must stop its units waits for systemd while it is unreachable. A restart of D-Bus is shorter. If
/// the machine is going down, systemd stops the units itself, and until this machine leaves, no other one runs them.
const LEAVE_PAUSE: Duration = Duration::from_secs(5);
/// Why nothing is done before this process has registered the machine, or has resumed its registration: another machine
/// may have the same id, and the engine may have moved units meanwhile.
const NOT_REGISTERED: &str =
    "the machine has not been registered under its id since fleetd started";

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact that changes by itself"
)]
pub(super) struct Work<S: KeyStore, C> {
    agent: Agent<S, C>,
    /// Whether the agent must stop, and how.
    leave_order: watch::Receiver<Option<Leave>>,
    units: Units,
    files: Files,
    duties: Duties,
    news: mpsc::UnboundedReceiver<ScopeUpdate>,
    /// Tasks that follow the registry.
    following: JoinSet<()>,
    progress: Arc<Progress>,
    lease: watch::Receiver<MachineLease>,
    /// Whether this process has registered the machine, or has resumed its registration.
    was_registered: bool,
    /// The last registration, which may have expired; first that of the previous process.
    registration: Option<Registration>,
    state_file: StateFile,
    /// Unset until systemd was reached once: a machine that can run nothing is no member of the cluster.
    keeper: Option<RegistrationKeeper<S>>,
    keeping: JoinSet<()>,
    /// The machine's description.
    machine: watch::Receiver<MachineRecord>,
    /// Whether the agent is halted, for the machine's record.
    is_halted: watch::Sender<bool>,
    /// Notifies the keeper that the registration is void.
    is_void: Arc<Notify>,
    reports: Option<Reports>,
    /// Whether the registry may hold states that the agent does not know.
    recalls_states: bool,
    /// Whether singletons were allowed to run at the last check.
    held_lease: bool,
    /// Ends when the units were handed over.
    handing_over: JoinSet<Option<BriefDrain>>,
    has_handed_over: bool,
    /// The drain for that, if this agent started one.
    drain: Option<BriefDrain>,
    /// Whether the agent must stop its units, and ends without that because systemd is unreachable.
    has_given_up: bool,
    /// When the next pass is due.
    act_at: Option<Instant>,
}

impl<S: KeyStore, C> Agent<S, C> {
    fn own_key(&self) -> String {
        self.registry.name(&Key::Machine(self.settings.id.clone()))
    }
}

impl<S: KeyStore, C: Connect> Work<S, C> {
    pub(super) fn begin(
        agent: Agent<S, C>,
        leave_order: watch::Receiver<Option<Leave>>,
    ) -> io::Result<Self> {
        let settings = &agent.settings;
        let disk = Disk::open_for_units(&settings.units_directory)?;
        let state_file = StateFile::open(disk.clone());
        let saved = state_file.registration();
        let saved = saved.filter(|saved| saved.key == agent.own_key());
        let (mut units, files) = Units::recall(disk, state_file.clone())?;
        let (lease_sender, lease) = watch::channel(MachineLease::unknown(settings.lease));
        let is_void = Arc::<Notify>::default();
        let is_halted = watch::Sender::new(units.memory.halt.is_some());
        let keeper = RegistrationKeeper {
            registry: agent.registry.clone(),
            id: settings.id.clone(),
            machine: settings.machine.clone(),
            is_halted: is_halted.subscribe(),
            lease: settings.lease,
            // With another lease it cannot be resumed.
            before: (saved.as_ref())
                .filter(|saved| saved.lease == settings.lease)
                .map(|saved| saved.registration.clone()),
            state_file: state_file.clone(),
            kept: (settings.host.clone()).map(|host| KeptRegistration::new(host, agent.own_key())),
            lease_sender,
            is_void: Arc::clone(&is_void),
        };
        let progress = Arc::<Progress>::default();
        // Reports of another machine id or another prefix are not in this registry. Stored before the machine registers:
        // after that the file has a registration of this id.
        if saved.is_none() {
            forget_last_report(&mut units);
        }
        if let Some(history) = &units.memory.history {
            progress.store(history.revision, history.last_report);
        }
        let (following, news) = duties::follow(&agent.registry, &settings.id, &progress);
        Ok(Self {
            leave_order,
            units,
            files,
            duties: Duties::default(),
            news,
            following,
            progress,
            lease,
            was_registered: false,
            registration: saved.map(|saved| saved.registration),
            state_file,
            keeper: Some(keeper),
            keeping: JoinSet::new(),
            handing_over: JoinSet::new(),
            has_handed_over: false,
            drain: None,
            has_given_up: false,
            machine: settings.machine.clone(),
            is_halted,
            is_void,
            reports: None,
            recalls_states: false,
            held_lease: true,
            act_at: None,
            agent,
        })
    }

    fn leave(&self) -> Option<Leave> {
        *self.leave_order.borrow()
    }

    fn is_leaving(&self) -> bool {
        match self.leave() {
            None | Some(Leave::Running) => false,
            Some(Leave::Stopped) => true,
            Some(Leave::Moved) => self.has_handed_over,
        }
    }

    /// Starts to hand units over, if the agent must stop that way.
    fn hand_over_if_ordered(&mut self) {
        if self.leave() == Some(Leave::Moved) && self.handing_over.is_empty() && !self.is_leaving()
        {
            let (registry, mirror) = (self.agent.registry.clone(), self.agent.mirror.clone());
            let (id, units) = (self.agent.settings.id.clone(), self.duties.placed_here());
            self.handing_over
                .spawn(hand_over::hand_over(registry, mirror, id, units));
        }
    }

    /// Serves one connection to systemd after another until the agent must stop and, if its units must stop,
    /// until they have or systemd stays unreachable.
    pub(super) async fn serve(&mut self) {
        let (mut pause, mut is_logged) = (PAUSE, false);
        // Unset while systemd is reachable or the agent need not stop.
        let mut give_up_at = None;
        while self.leave() != Some(Leave::Running) {
            if self.leave().is_some() {
                give_up_at.get_or_insert_with(|| Instant::now() + LEAVE_PAUSE);
            }
            let connected = tokio::select! {
                connected = self.agent.connect.connect() => connected,
                _ = self.leave_order.changed() => continue,
                () = wait_until(give_up_at) => return self.give_up(),
            };
            let connected_at = Instant::now();
            let served = match connected {
                Ok(systemd) => {
                    self.begin_keeping();
                    (pause, is_logged) = (PAUSE, false);
                    self.serve_with(systemd).await
                }
                Err(error) => Err(error),
            };
            match served {
                Ok(()) => return,
                Err(error) if !std::mem::replace(&mut is_logged, true) => {
                    tracing::warn!(error = chain(&error), "systemd unreachable: retrying");
                }
                Err(_) => {}
            }
            if connected_at.elapsed() > LEAVE_PAUSE {
                give_up_at = None;
            }
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.leave_order.changed() => {}
                () = wait_until(give_up_at) => return self.give_up(),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Ends without having stopped the units.
    fn give_up(&mut self) {
        tracing::warn!(
            units = self.units.count(),
            "systemd unreachable: leaving the cluster without having stopped units"
        );
        self.has_given_up = true;
    }

    fn begin_keeping(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            self.keeping.spawn(keeper.run());
        }
    }

    async fn serve_with(&mut self, mut systemd: C::Systemd) -> Result<(), Error> {
        use super::systemd::Systemd as _;
        self.units.adopt_connection(&systemd).await?;
        self.hand_over_if_ordered();
        self.act_soon(Duration::ZERO);
        loop {
            if self.leave() == Some(Leave::Running) {
                return Ok(());
            }
            let act_at = self.act_at.unwrap_or_else(|| Instant::now() + LOOK_PAUSE);
            tokio::select! {
                biased;
                leave_order = self.leave_order.changed() => {
                    if leave_order.is_err() {
                        return Ok(());
                    }
                    self.hand_over_if_ordered();
                    self.act_soon(Duration::ZERO);
                }
                changed = self.lease.changed() => {
                    // Without its keeper the agent is useless. The supervisor restarts it with a new one.
                    if changed.is_err() {
                        return Ok(());
                    }
                    self.lease_changed();
                }
                Some(news) = self.news.recv() => {
                    self.check_history(&news);
                    self.duties.apply(news);
                    self.resume_if_ordered();
                    self.act_soon(Duration::ZERO);
                }
                Some(ended) = self.handing_over.join_next() => {
                    self.drain = ended.ok().flatten();
                    self.has_handed_over = true;
                    self.act_soon(Duration::ZERO);
                }
                Ok(()) = self.machine.changed() => self.act_soon(Duration::ZERO),
                signal = systemd.next_signal() => {
                    if self.units.apply_signal(&signal?) {
                        self.act_soon(GATHERING);
                    }
                }
                () = sleep_until(act_at) => {
                    self.act(&systemd).await?;
                    if self.is_leaving() && self.units.are_stopped() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn act_soon(&mut self, pause: Duration) {
        let at = Instant::now() + pause;
        self.act_at = Some(self.act_at.map_or(at, |before| before.min(at)));
    }

    fn lease_changed(&mut self) {
        if self.may_run_singletons() != self.held_lease {
            self.act_soon(Duration::ZERO);
        }
        let registration = self.lease.borrow_and_update().registration.clone();
        self.was_registered |= registration.is_some();
        let is_same = registration == self.registration;
        if is_same && self.reports.is_some() == registration.is_some() {
            return;
        }
        if let Some(registration) = registration.as_ref().filter(|_| !is_same) {
            // While the machine was away, the engine may have given its units to others.
            self.follow_all(registration.revision());
        }
        let last_report = self.units.memory.history;
        let last_report = last_report.map_or(0, |history| history.last_report);
        self.resume_reports(registration.clone(), last_report);
        self.agent.status.send_modify(|status| {
            status.is_registered = registration.is_some();
            status.registrations += u32::from(registration.is_some());
        });
        self.registration = registration.or(self.registration.take());
        self.act_soon(Duration::ZERO);
    }

    /// Lists everything that the agent follows again. Until then it acts on no orders.
    fn follow_all(&mut self, registered_at: Revision) {
        self.duties.expect_all(registered_at);
        (self.following, self.news) = duties::follow(
            &self.agent.registry,
            &self.agent.settings.id,
            &self.progress,
        );
    }

    /// Reports under this registration from now on. Units may have been reported before.
    fn resume_reports(&mut self, registration: Option<Registration>, last_report: Revision) {
        let units = self.units.memory.reported.clone();
        self.reports =
            registration.map(|registration| Reports::resumed(registration, units, last_report));
    }

    /// Halts if the registry was replaced or has gone back in time, as after a restore of etcd: its contents
    /// may be outdated.
    fn check_history(&mut self, news: &ScopeUpdate) {
        let (revision, before) = (news.revision(), self.units.memory.history);
        let store = news.listed.map(|listed| listed.store);
        let Some(store) = store.or(before.map(|before| before.store)) else {
            return;
        };
        let why = if before.is_some_and(|before| before.store != store) {
            Some("is another one")
        } else if news.listed.is_some_and(|listed| listed.went_back) {
            Some("went back in time")
        } else {
            None
        };
        if let Some(why) = why {
            return self.halt(why, store, revision);
        }
        self.remember_history(History {
            store,
            revision: before.map_or(revision, |before| before.revision.max(revision)),
            // Reports of this agent only: those of another machine with this id are deleted when that machine
            // leaves.
            last_report: before.map_or(0, |before| before.last_report),
        });
        if before.is_none() {
            self.units.remember();
        }
    }

    fn remember_history(&mut self, history: History) {
        self.units.memory.history = Some(history);
        self.progress.store(history.revision, history.last_report);
    }

    /// Halts the agent until an operator orders it to resume, because of the registry's state at this revision.
    /// Everything is listed and reported again.
    fn halt(&mut self, why: &str, store: u64, revision: Revision) {
        let reason = format!(
            "the registry {why}, as after a restore of etcd: nothing is done until an operator runs fleetctl resume"
        );
        tracing::error!(revision, reason, "agent halted: units keep running");
        // Replaces an earlier halt: its revision, and an order to resume from before the restore, mean nothing
        // in this registry.
        self.units.memory.halt = Some((reason, revision));
        self.duties.forget_resume();
        self.recalls_states = true;
        let registration = self.lease.borrow().registration.clone();
        self.resume_reports(registration, 0);
        self.remember_history(History {
            store,
            revision,
            last_report: 0,
        });
        self.units.remember();
        // Also if it was halted before: this registry may have an older record of the machine.
        self.is_halted.send_replace(true);
        // Last, because the followers compare what they read with the history. The registration's revision means
        // nothing in this registry.
        self.follow_all(0);
    }

    /// Resumes after a halt if an operator has ordered it since. Epochs start again with the registry.
    fn resume_if_ordered(&mut self) {
        let memory = &mut self.units.memory;
        let resumed_at = self.duties.resumed_at();
        let Some((_, halted_at)) = &memory.halt else {
            return;
        };
        if resumed_at.is_some_and(|resumed_at| resumed_at > *halted_at) {
            tracing::warn!("agent resumed by an operator");
            memory.halt = None;
            for known in memory.units.values_mut() {
                known.epoch = 0;
            }
            self.units.remember();
            self.is_halted.send_replace(false);
        }
    }

    /// Whether no other machine can run units of this one.
    fn may_run_singletons(&self) -> bool {
        let lease = self.lease.borrow();
        lease.registration.is_some() && lease.is_held() && !self.duties.are_expected()
    }

    /// Checks everything, carries out tasks and reports states.
    async fn act(&mut self, systemd: &C::Systemd) -> Result<(), Error> {
        let mut next = Instant::now() + LOOK_PAUSE;
        // If the lease is not renewed by then, singletons stop.
        let ends_at = self.lease.borrow().ends_at();
        self.act_at = None;
        self.units.check_not_started(systemd).await?;
        self.held_lease = self.may_run_singletons();
        if !self.held_lease && !self.lease.borrow().is_held() {
            self.units.stop_singletons(systemd).await?;
        }
        if self.is_leaving() {
            let none = Orders::default();
            self.units.bring_about(systemd, &none, &self.files).await?;
        } else if !self.duties.are_expected() {
            next = next.min(self.follow_orders(systemd, ends_at).await?);
        }
        if !self.report(systemd).await? || self.units.has_lost_some() {
            next = Instant::now() + PAUSE;
        }
        // The expected lists wake the agent.
        let retry_at = self.units.retry_at();
        let retry_at = retry_at.filter(|_| !self.duties.are_expected());
        for at in [retry_at, ends_at].into_iter().flatten() {
            next = next.min(at.max(Instant::now() + GATHERING));
        }
        self.act_at = Some(self.act_at.map_or(next, |at| at.min(next)));
        Ok(())
    }

    /// Carries out the last orders. Returns when to do so again.
    async fn follow_orders(
        &mut self,
        systemd: &C::Systemd,
        ends_at: Option<Instant>,
    ) -> Result<Instant, Error> {
        let mut next = Instant::now() + LOOK_PAUSE;
        if self.duties.are_listed() {
            if !matches!(in_time(ends_at, self.read_files()).await, Some(Ok(()))) {
                next = Instant::now() + PAUSE;
            }
            let mut orders = self.orders();
            if !self.claim_singletons(&mut orders, ends_at).await {
                next = next.min(Instant::now() + PAUSE);
            }
            self.units
                .bring_about(systemd, &orders, &self.files)
                .await?;
            self.drop_files(&orders);
        }
        Ok(next)
    }

    /// Reports the states. Returns whether all of them could be reported.
    async fn report(&mut self, systemd: &C::Systemd) -> Result<bool, Error> {
        let states = match self.units.report(systemd).await {
            Err(error @ Error::Unreachable { .. }) => return Err(error),
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "reading unit states from systemd failed"
                );
                return Ok(true);
            }
            Ok(states) => states,
        };
        self.agent.status.send_modify(|status| {
            status.units = self.units.count();
            status.is_halted = self.units.memory.halt.is_some();
            status.failing = states
                .values()
                .filter(|state| !state.error.is_empty())
                .count();
        });
        telemetry::show(&self.agent.status.borrow());
        // What is reported depends on whether the agent halts, which only the lists show.
        if !self.duties.are_listed() || self.duties.are_expected() {
            return Ok(true);
        }
        let ends_at = self.lease.borrow().ends_at();
        if self.recalls_states
            && !matches!(in_time(ends_at, self.recall_states()).await, Some(Ok(())))
        {
            return Ok(false);
        }
        let Some(reports) = &mut self.reports else {
            return Ok(true);
        };
        let units: BTreeSet<String> = states.keys().cloned().collect();
        // Stored first: otherwise a process that ends in between could not remove these reports.
        self.units
            .may_be_reported(units.union(&self.units.memory.reported).cloned().collect());
        let published = reports.publish(&self.agent.registry, &states);
        let published = in_time(ends_at, published).await;
        self.record_report();
        let Some(published) = published else {
            return Ok(false);
        };
        if let Err(error) = &published {
            tracing::debug!(error = chain(error), "reporting unit states failed");
            match error {
                registry::Error::Unregistered => {
                    self.reports = None;
                    self.is_void.notify_one();
                }
                registry::Error::WentBack { revision } => {
                    if let Some(History { store, .. }) = self.units.memory.history {
                        self.halt("went back in time", store, *revision);
                    }
                }
                _ => {}
            }
        } else {
            self.units.may_be_reported(units);
        }
        Ok(published.is_ok())
    }

    /// Reads this machine's states in the registry: an older etcd may have brought some back.
    async fn recall_states(&mut self) -> Result<(), registry::Error> {
        let machine = &self.agent.settings.id;
        let reported = self.agent.registry.reported_by(machine).await?;
        let mut units = self.units.memory.reported.clone();
        units.extend(reported);
        self.units.may_be_reported(units);
        let registration = self.lease.borrow().registration.clone();
        self.resume_reports(registration, 0);
        self.recalls_states = false;
        Ok(())
    }

    /// Stores the revision of the last report: an etcd that does not know it was restored.
    fn record_report(&mut self) {
        let last_report = self.reports.as_ref().map_or(0, Reports::last);
        if let Some(history) = self.units.memory.history
            && history.last_report < last_report
        {
            self.remember_history(History {
                last_report,
                ..history
            });
            self.units.remember();
        }
    }

    fn orders(&self) -> Orders {
        let settings = &self.agent.settings;
        let machine = schedule::Machine::new(
            MachineId::new(settings.id.as_str()),
            self.duties
                .metadata(&settings.id, &settings.machine.borrow().metadata),
        );
        let mut orders = self
            .duties
            .orders(&machine, &self.files, &self.units.memory.units);
        if let Some((reason, _)) = &self.units.memory.halt {
            return orders.halted(reason, &self.units.memory.units);
        }
        if !self.was_registered {
            return orders.halted(NOT_REGISTERED, &self.units.memory.units);
        }
        if !self.held_lease {
            for (unit, desired) in &mut orders.desired {
                let file = self.files.get(&desired.hash);
                let is_singleton =
                    file.is_some_and(|file| duties::requirements(unit, file).is_singleton);
                // A singleton that runs and need not stop is left running.
                if is_singleton && !self.units.is_launched(unit) {
                    desired.state = desired.state.min(DesiredState::Loaded);
                }
            }
        }
        orders
    }

    /// Reports each singleton before it is started. One that cannot be reported is not started. Returns whether
    /// all could be.
    async fn claim_singletons(&mut self, orders: &mut Orders, ends_at: Option<Instant>) -> bool {
        let mut are_claimed = true;
        for (unit, desired) in &orders.desired {
            let file = self.files.get(&desired.hash);
            let is_singleton =
                file.is_some_and(|file| duties::requirements(unit, file).is_singleton);
            let is_about_to_start = desired.state == DesiredState::Launched
                && !self.units.is_launched(unit)
                && !orders.pinned.contains_key(unit);
            if !is_singleton || !is_about_to_start {
                continue;
            }
            let ordered_at = self.duties.ordered_at(&self.agent.settings.id, unit);
            let is_claimed = match (&mut self.reports, ordered_at) {
                (Some(reports), _) if reports.has(unit) => true,
                (Some(reports), Some(ordered_at)) => {
                    let mut reported = self.units.memory.reported.clone();
                    reported.insert(unit.clone());
                    self.units.may_be_reported(reported);
                    let registry = &self.agent.registry;
                    let claim = reports.claim(registry, unit, &desired.hash, ordered_at);
                    matches!(in_time(ends_at, claim).await, Some(Ok(true)))
                }
                _ => false,
            };
            if !is_claimed {
                let reason = "its start cannot be reported, and it must never run twice".to_owned();
                orders.pinned.insert(unit.clone(), reason);
                are_claimed = false;
            }
        }
        self.record_report();
        are_claimed
    }

    /// Reads missing unit files.
    async fn read_files(&mut self) -> Result<(), registry::Error> {
        let missing = self.duties.hashes();
        let missing = missing.filter(|(_, hash)| !self.files.contains_key(*hash));
        let missing: BTreeSet<String> = missing.map(|(unit, _)| unit.to_owned()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.into_iter().collect();
        for (unit, body) in self.agent.registry.find_bodies(&missing).await? {
            match Options::new(&body.options) {
                Ok(file) => _ = self.files.insert(file.hash().to_string(), file),
                Err(error) => tracing::warn!(unit, %error, "unit file unusable"),
            }
        }
        Ok(())
    }

    /// Forgets files that no unit uses.
    fn drop_files(&mut self, orders: &Orders) {
        let desired = orders.desired.values().map(|desired| desired.hash.as_str());
        let used = self.duties.hashes().map(|(_, hash)| hash).chain(desired);
        let used: BTreeSet<&str> = used.collect();
        self.files.retain(|hash, _| used.contains(hash.as_str()));
    }

    /// Stores the state, or leaves the cluster at once instead of waiting for the lease to expire.
    pub(super) async fn end(mut self) {
        // It stores the registration: never after the next agent has started.
        self.keeping.shutdown().await;
        // A unit that must never run twice may run on: until the lease expires, no other machine starts it.
        let may_leave = !self.has_given_up || !self.units.may_run_singletons();
        if (self.is_leaving() || self.has_given_up) && may_leave {
            forget_last_report(&mut self.units);
            self.state_file.remember_registration(None);
            // The keeper may have registered the machine since the agent last looked.
            let registration = self.lease.borrow().registration.clone();
            if let Some(registration) = registration.or(self.registration.take()) {
                let registry = &self.agent.registry;
                let ended = registry.deregister_machine(registration).await;
                if let Err(error) = ended {
                    let error = chain(&error);
                    tracing::warn!(error, "revoking the machine's lease failed: it will expire");
                }
            }
            // Last: otherwise units would return to a machine that is no longer drained.
            if let Some(drain) = &self.drain {
                let (registry, id) = (&self.agent.registry, &self.agent.settings.id);
                if let Err(error) = registry.end_brief_drain(id, drain).await {
                    let error = chain(&error);
                    tracing::warn!(error, "ending the drain failed: it will expire");
                }
            }
        }
        self.units.remember();
    }
}

/// Forgets the machine's last report, which is no longer in the registry.
fn forget_last_report(units: &mut Units) {
    if let Some(history) = &mut units.memory.history {
        history.last_report = 0;
        units.remember();
    }
}

/// Without a time it waits forever.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The result of a future, or `None` if it is not ready by this time. Without a time it waits.
async fn in_time<T>(until: Option<Instant>, something: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, something).await.ok(),
        None => Some(something.await),
    }
}

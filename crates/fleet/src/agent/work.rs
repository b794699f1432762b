//! The agent's main loop.

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use self::history::forget_last_report;
use super::disk::{Disk, StateFile};
use super::duties::Orders;
use super::leaving::Leaving;
use super::membership::Membership;
use super::order_watch::OrderWatch;
use super::reporter::Reporter;
use super::systemd::{Connect, Error};
use super::units::Units;
use super::{Agent, Leave, telemetry};
use crate::keys::KeyStore;
use crate::registry::{self, UnitState};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_server_kit::backoff::Backoff;
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

/// The agent and its parts. Each wakes the loop, which then checks everything.
pub(super) struct Work<S: KeyStore, C> {
    agent: Agent<S, C>,
    units: Units,
    orders: OrderWatch<S>,
    membership: Membership<S>,
    reporter: Reporter<S>,
    leaving: Leaving,
    /// Whether singletons were allowed to run at the last check.
    allows_singletons: bool,
    /// When the next pass is due.
    act_at: Option<Instant>,
}

/// Why an agent no longer serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// It must stop. If its units must stop, they have.
    Stopping,
    /// It must stop its units, and ends without that because systemd is unreachable.
    GaveUp,
}

impl<S: KeyStore, C: Connect> Work<S, C> {
    pub(super) fn begin(
        agent: Agent<S, C>,
        leave_order: watch::Receiver<Option<Leave>>,
    ) -> io::Result<Self> {
        let (registry, settings) = (&agent.registry, &agent.settings);
        let disk = Disk::open_for_units(&settings.units_directory)?;
        let state_file = StateFile::open(disk.clone());
        let (mut units, files) = Units::recall(disk, state_file.clone())?;
        let is_halted = units.memory.halt.is_some();
        let membership = Membership::new(registry, settings, state_file, is_halted);
        // Reports of another machine id or another prefix are not in this registry. Stored before the machine registers:
        // after that the file has a registration of this id.
        if membership.last().is_none() {
            forget_last_report(&mut units);
        }
        let (id, history) = (settings.id.clone(), units.memory.history);
        Ok(Self {
            orders: OrderWatch::new(registry.clone(), id.clone(), files, history),
            membership,
            reporter: Reporter::new(registry.clone(), id),
            units,
            leaving: Leaving::new(leave_order),
            allows_singletons: true,
            act_at: None,
            agent,
        })
    }

    /// Serves one connection to systemd after another until the agent must stop and, if its units must stop,
    /// until they have or systemd stays unreachable.
    pub(super) async fn serve(&mut self) -> Served {
        let mut backoff = Backoff::new(PAUSE, PAUSE_MAX);
        // Unset while systemd is reachable or the agent need not stop.
        let mut give_up_at = None;
        while self.leaving.order() != Some(Leave::Running) {
            if self.leaving.order().is_some() {
                give_up_at.get_or_insert_with(|| Instant::now() + LEAVE_PAUSE);
            }
            let connected = tokio::select! {
                connected = self.agent.connect.connect() => connected,
                () = self.leaving.changed() => continue,
                () = wait_until(give_up_at) => return self.give_up(),
            };
            let connected_at = Instant::now();
            let served = match connected {
                Ok(systemd) => {
                    self.membership.join();
                    backoff.reset();
                    self.serve_with(systemd).await
                }
                Err(error) => Err(error),
            };
            let Err(error) = served else {
                break;
            };
            if !backoff.is_failing() {
                tracing::warn!(error = chain(&error), "systemd unreachable: retrying");
            }
            if connected_at.elapsed() > LEAVE_PAUSE {
                give_up_at = None;
            }
            tokio::select! {
                () = sleep(backoff.next_pause()) => {}
                () = self.leaving.changed() => {}
                () = wait_until(give_up_at) => return self.give_up(),
            }
        }
        Served::Stopping
    }

    fn give_up(&self) -> Served {
        tracing::warn!(
            units = self.units.count(),
            "systemd unreachable: leaving the cluster without having stopped units"
        );
        Served::GaveUp
    }

    async fn serve_with(&mut self, mut systemd: C::Systemd) -> Result<(), Error> {
        use super::systemd::Systemd as _;
        self.units.adopt_connection(&systemd).await?;
        self.leave_if_ordered();
        loop {
            if self.leaving.order() == Some(Leave::Running) {
                return Ok(());
            }
            let act_at = self.act_at.unwrap_or_else(|| Instant::now() + LOOK_PAUSE);
            tokio::select! {
                biased;
                () = self.leaving.changed() => self.leave_if_ordered(),
                changed = self.membership.changed() => {
                    // Without its keeper the agent is useless. The supervisor restarts it with a new one.
                    if changed.is_err() {
                        return Ok(());
                    }
                    self.membership_changed();
                }
                Some(update) = self.orders.next_update() => {
                    self.check_history(&update);
                    self.orders.duties.apply(update);
                    self.resume_if_ordered();
                    self.act_soon(Duration::ZERO);
                }
                Ok(()) = self.agent.settings.machine.changed() => self.act_soon(Duration::ZERO),
                signal = systemd.next_signal() => {
                    if self.units.apply_signal(&signal?) {
                        self.act_soon(GATHERING);
                    }
                }
                () = sleep_until(act_at) => {
                    self.act(&systemd).await?;
                    if self.leaving.is_due() && self.units.are_stopped() {
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

    fn leave_if_ordered(&mut self) {
        let (agent, units) = (&self.agent, || self.orders.duties.placed_here());
        self.leaving.hand_over_if_ordered(
            (&agent.registry, &agent.mirror),
            &agent.settings.id,
            units,
        );
        self.act_soon(Duration::ZERO);
    }

    fn membership_changed(&mut self) {
        if self.may_run_singletons() != self.allows_singletons {
            self.act_soon(Duration::ZERO);
        }
        let (registration, is_same) = self.membership.refresh();
        if is_same && self.reporter.is_registered() == registration.is_some() {
            return;
        }
        if let Some(registration) = registration.as_ref().filter(|_| !is_same) {
            // While the machine was away, the engine may have given its units to others.
            self.orders.follow_again(registration.revision());
        }
        self.agent.status.send_modify(|status| {
            status.is_registered = registration.is_some();
            status.registrations += u32::from(registration.is_some());
        });
        self.reporter.resume(registration, &self.units.memory);
        self.act_soon(Duration::ZERO);
    }

    /// Whether no other machine can run units of this one.
    fn may_run_singletons(&self) -> bool {
        let lease = self.membership.lease();
        lease.registration.is_some() && lease.is_held() && !self.orders.duties.are_expected()
    }

    /// Checks everything, carries out tasks and reports states.
    async fn act(&mut self, systemd: &C::Systemd) -> Result<(), Error> {
        let mut next = Instant::now() + LOOK_PAUSE;
        // If the lease is not renewed by then, singletons stop.
        let ends_at = self.membership.lease().ends_at();
        self.act_at = None;
        self.units.check_not_started(systemd).await?;
        self.allows_singletons = self.may_run_singletons();
        if !self.allows_singletons && !self.membership.lease().is_held() {
            self.units.stop_singletons(systemd).await?;
        }
        if self.leaving.is_due() {
            let (none, files) = (Orders::default(), &self.orders.files);
            self.units.converge(systemd, &none, files).await?;
        } else if self.orders.is_current() && !self.follow_orders(systemd, ends_at).await? {
            next = Instant::now() + PAUSE;
        }
        if !self.report(systemd).await? || self.units.take_lost_units() {
            next = Instant::now() + PAUSE;
        }
        // The expected lists wake the agent.
        let retry_at = self.units.retry_at();
        let retry_at = retry_at.filter(|_| !self.orders.duties.are_expected());
        for at in [retry_at, ends_at].into_iter().flatten() {
            next = next.min(at.max(Instant::now() + GATHERING));
        }
        self.act_at = Some(self.act_at.map_or(next, |at| at.min(next)));
        Ok(())
    }

    /// Carries out the last orders. Returns whether all of them could be read and claimed.
    async fn follow_orders(
        &mut self,
        systemd: &C::Systemd,
        ends_at: Option<Instant>,
    ) -> Result<bool, Error> {
        let read = in_time(ends_at, self.orders.read_files()).await;
        let mut orders = self.orders_now();
        let are_claimed = self.claim_singletons(&mut orders, ends_at).await;
        let files = &self.orders.files;
        self.units.converge(systemd, &orders, files).await?;
        self.orders.drop_files(&orders);
        Ok(are_claimed && matches!(read, Some(Ok(()))))
    }

    /// The orders that may be followed now.
    fn orders_now(&self) -> Orders {
        let memory = &self.units.memory;
        let mut orders = self.orders.orders(&self.agent.settings, memory);
        if let Some((reason, _)) = &memory.halt {
            return orders.halted(reason, &memory.units);
        }
        if !self.membership.is_own() {
            return orders.halted(NOT_REGISTERED, &memory.units);
        }
        if !self.allows_singletons {
            // A singleton that runs and need not stop is left running.
            for unit in self.starting_singletons(&orders) {
                if let Some(desired) = orders.desired.get_mut(&unit) {
                    desired.state = DesiredState::Loaded;
                }
            }
        }
        orders
    }

    /// Units that must never run twice, and are to be started.
    fn starting_singletons(&self, orders: &Orders) -> Vec<String> {
        let starting = orders.desired.iter().filter(|(unit, desired)| {
            desired.state == DesiredState::Launched
                && !self.units.is_launched(unit)
                && self.orders.is_singleton(unit, &desired.hash)
        });
        starting.map(|(unit, _)| unit.clone()).collect()
    }

    /// Reports each singleton before it is started. One that cannot be reported is not started. Returns whether
    /// all could be.
    async fn claim_singletons(&mut self, orders: &mut Orders, ends_at: Option<Instant>) -> bool {
        let mut are_claimed = true;
        for unit in self.starting_singletons(orders) {
            if orders.pinned.contains_key(&unit) {
                continue;
            }
            let (hash, ordered_at) = (orders.hash(&unit), self.orders.ordered_at(&unit));
            let claim = self
                .reporter
                .claim(&mut self.units, &unit, hash, ordered_at);
            if in_time(ends_at, claim).await != Some(true) {
                let reason = "its start cannot be reported, and it must never run twice".to_owned();
                orders.pinned.insert(unit, reason);
                are_claimed = false;
            }
        }
        self.record_report();
        are_claimed
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
        Ok(!self.orders.is_current() || self.publish(&states).await)
    }

    async fn publish(&mut self, states: &BTreeMap<String, UnitState>) -> bool {
        let ends_at = self.membership.lease().ends_at();
        let recalled = self.reporter.recall(&self.membership, &mut self.units);
        if !matches!(in_time(ends_at, recalled).await, Some(Ok(()))) {
            return false;
        }
        if !self.reporter.is_registered() {
            return true;
        }
        let units: BTreeSet<String> = states.keys().cloned().collect();
        // Stored first: otherwise a process that ends in between could not remove these reports.
        self.units
            .may_be_reported(units.union(&self.units.memory.reported).cloned().collect());
        let published = in_time(ends_at, self.reporter.publish(states)).await;
        self.record_report();
        match published {
            Some(Ok(())) => self.units.may_be_reported(units),
            Some(Err(error)) => {
                self.publishing_failed(&error);
                return false;
            }
            None => return false,
        }
        true
    }

    fn publishing_failed(&mut self, error: &registry::Error) {
        tracing::debug!(error = chain(error), "reporting unit states failed");
        match (error, self.units.memory.history) {
            (registry::Error::Unregistered, _) => {
                self.reporter.resume(None, &self.units.memory);
                self.membership.check();
            }
            (registry::Error::WentBack { revision }, Some(history)) => {
                self.halt("went back in time", history.store, *revision);
            }
            _ => {}
        }
    }

    /// Stores the state, or leaves the cluster at once instead of waiting for the lease to expire.
    pub(super) async fn end(mut self, served: Served) {
        // It stores the registration: never after the next agent has started.
        self.membership.stop_keeping().await;
        let must_leave = match served {
            Served::Stopping => self.leaving.is_due(),
            // A unit that must never run twice may run on: until the lease expires, no other machine starts it.
            Served::GaveUp => !self.units.may_run_singletons(),
        };
        if must_leave {
            forget_last_report(&mut self.units);
            let (registry, id) = (&self.agent.registry, &self.agent.settings.id);
            self.membership.leave(registry).await;
            // Last: otherwise units would return to a machine that is no longer drained.
            self.leaving.end_drain(registry, id).await;
        }
        self.units.remember();
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

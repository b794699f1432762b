//! The agent: brings the units that are placed on its machine to their desired state, through systemd, and reports what
//! became of them.
//!
//! ```text
//! registry ─▶ duties ─▶ orders ─┐
//!                               ├─▶ tasks (fleet-model) ─▶ units ─▶ systemd
//! disk, memory ─▶ units ────────┘                            │         │ signals
//!                                                            ▼         ▼
//! registry ◀────────────── reports ◀───────────────────── states ◀─────┘
//! registry ◀────────────── keeper      the machine's lease, beside all of it
//! ```
//!
//! The loop looks at everything each time it wakes: after a change in the registry, after a signal of systemd, when a unit
//! that failed is to be tried again, and once a minute. Without the registry it goes on with what it last knew; it stops
//! nothing for that. `docs/fleet-agent.md` tells the rest.

mod dbus;
mod disk;
mod duties;
mod keeper;
mod systemd;
mod units;

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

pub use self::dbus::{Bus, DbusSystemd};
use self::duties::{Duties, Files, News, Orders};
use self::keeper::{Keeper, Membership};
pub use self::systemd::{Connect, Error, Origin, Systemd, SystemdState};
use self::units::Units;
use crate::Fleet;
use crate::keys::KeyStore;
use crate::registry::{self, Machine, Registry, Reports};
use hyperfleet_fleet_model::schedule::{self, MachineId};
use hyperfleet_fleet_model::unit::{DesiredState, Options};
use hyperfleet_server_kit::causes::chain;

/// How long signals are gathered before states are read: a start or a stop is several of them.
const GATHERING: Duration = Duration::from_millis(20);
/// How often everything is looked at without a cause.
const LOOK_PAUSE: Duration = Duration::from_mins(1);
/// How long to wait before the registry, or systemd, is tried again.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What an agent is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The id of its machine.
    pub id: String,
    /// What the machine says of itself.
    pub machine: Machine,
    /// How long the machine's lease lives.
    pub lease: Duration,
    /// The folder of unit files; it is the agent's own.
    pub units_directory: PathBuf,
}

/// What becomes of the units when an agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// They go on, and the machine's lease lives its time: an agent that starts before that finds all as it was.
    Running,
    /// They are stopped, and the machine leaves the cluster.
    Stopped,
}

/// An agent of a machine.
pub struct Agent<S, C> {
    registry: Registry<S>,
    connect: C,
    settings: Settings,
}

impl<S: KeyStore, C: Connect> Agent<S, C> {
    pub fn new(fleet: &Fleet<S>, connect: C, settings: Settings) -> Self {
        Self {
            registry: fleet.registry.clone(),
            connect,
            settings,
        }
    }

    /// Works until it is told to end, and how.
    ///
    /// # Errors
    /// The folder of unit files cannot be used.
    pub async fn run(self, stop: impl Future<Output = Leave> + Send) -> io::Result<()> {
        let (units, files) = Units::recall(&self.settings.units_directory)?;
        let (tell, membership) = watch::channel(Membership::unknown(self.settings.lease));
        let keeper = Keeper {
            registry: self.registry.clone(),
            id: self.settings.id.clone(),
            machine: self.settings.machine.clone(),
            lease: self.settings.lease,
            tell,
        };
        let (_following, news) = duties::follow(&self.registry, &self.settings.id);
        let mut work = Work {
            agent: self,
            units,
            files,
            duties: Duties::default(),
            news,
            membership,
            reports: None,
            act_at: None,
            leaves: false,
            keeper: Some(keeper),
            beside: JoinSet::new(),
        };
        tokio::pin!(stop);
        let leave = tokio::select! {
            leave = &mut stop => leave,
            () = work.serve() => Leave::Running,
        };
        if leave == Leave::Stopped {
            work.leaves = true;
            work.serve().await;
            work.beside.shutdown().await;
            work.deregister().await;
        }
        Ok(())
    }
}

/// What an agent works with.
struct Work<S: KeyStore, C> {
    agent: Agent<S, C>,
    units: Units,
    files: Files,
    duties: Duties,
    news: mpsc::UnboundedReceiver<News>,
    membership: watch::Receiver<Membership>,
    reports: Option<Reports>,
    /// When to act next.
    act_at: Option<Instant>,
    /// Whether all units are to be stopped, because the machine leaves.
    leaves: bool,
    /// Until systemd could be reached: a machine that can run nothing is no member of the cluster.
    keeper: Option<Keeper<S>>,
    beside: JoinSet<()>,
}

impl<S: KeyStore, C: Connect> Work<S, C> {
    /// Serves on one connection to systemd after the other, until all units are gone if the machine leaves.
    async fn serve(&mut self) {
        let (mut pause, mut is_told) = (PAUSE, false);
        loop {
            let served = match self.agent.connect.connect().await {
                Ok(systemd) => {
                    if let Some(keeper) = self.keeper.take() {
                        let before = self.units.memory.registration.clone();
                        self.beside.spawn(keeper.keep(before));
                    }
                    (pause, is_told) = (PAUSE, false);
                    self.serve_with(systemd).await
                }
                Err(error) => Err(error),
            };
            match served {
                Ok(()) => return,
                Err(error) if !std::mem::replace(&mut is_told, true) => {
                    tracing::warn!(error = chain(&error), "the agent cannot reach systemd");
                }
                Err(_) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn serve_with(&mut self, mut systemd: C::Systemd) -> Result<(), Error> {
        self.units.take_up(&systemd).await?;
        self.act_soon(Duration::ZERO);
        loop {
            let act_at = self.act_at.unwrap_or_else(|| Instant::now() + LOOK_PAUSE);
            tokio::select! {
                biased;
                news = self.news.recv() => match news {
                    Some(news) => {
                        self.duties.take(news);
                        self.act_soon(Duration::ZERO);
                    }
                    None => return Ok(()),
                },
                changed = systemd.changed() => {
                    let unit = changed?;
                    if self.units.has(&unit) {
                        self.units.changed(&unit);
                        self.act_soon(GATHERING);
                    }
                }
                _ = self.membership.changed() => self.membership_changed(),
                () = sleep_until(act_at) => {
                    self.act(&systemd).await?;
                    if self.leaves && self.units.names().is_empty() {
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

    /// A new registration begins with nothing reported.
    fn membership_changed(&mut self) {
        let registration = self.membership.borrow_and_update().registration.clone();
        if registration == self.units.memory.registration && self.reports.is_some() {
            return;
        }
        // Of one that is taken up the units may have been reported before.
        let units = self.units.names();
        let reports = |registration| Reports::resumed(registration, units);
        self.reports = registration.clone().map(reports);
        self.units.memory.registration = registration;
        self.units.remember();
        self.act_soon(Duration::ZERO);
    }

    /// Looks at everything, does what is to be done, and reports what is.
    async fn act(&mut self, systemd: &C::Systemd) -> Result<(), Error> {
        let mut next = Instant::now() + LOOK_PAUSE;
        self.act_at = None;
        if self.duties.are_known() {
            if self.read_files().await.is_err() {
                next = Instant::now() + PAUSE;
            }
            let orders = self.orders();
            self.units
                .bring_about(systemd, &orders, &self.files)
                .await?;
            self.drop_files(&orders);
        }
        let states = self.units.report(systemd).await?;
        if let Some(reports) = &mut self.reports
            && let Err(error) = reports.publish(&self.agent.registry, &states).await
        {
            if matches!(error, registry::Error::Unregistered) {
                // The keeper registers the machine again, and says so.
                self.reports = None;
            } else {
                tracing::debug!(error = chain(&error), "states of units were not reported");
                next = Instant::now() + PAUSE;
            }
        }
        let retry_at = self.units.retry_at();
        // Units that must never run twice stop then.
        let ends_at = self.membership.borrow().ends_at();
        for at in [retry_at, ends_at].into_iter().flatten() {
            next = next.min(at.max(Instant::now() + GATHERING));
        }
        self.act_at = Some(self.act_at.map_or(next, |at| at.min(next)));
        Ok(())
    }

    fn machine(&self) -> schedule::Machine {
        let settings = &self.agent.settings;
        schedule::Machine {
            id: MachineId::new(settings.id.as_str()),
            metadata: self.duties.metadata(&settings.machine.metadata),
        }
    }

    fn orders(&self) -> Orders {
        let mut orders = if self.leaves {
            Orders::default()
        } else {
            self.duties
                .orders(&self.machine(), &self.files, &self.units.memory.units)
        };
        if !self.membership.borrow().is_sure() {
            for (unit, desired) in &mut orders.desired {
                let file = self.files.get(&desired.hash);
                let is_singleton =
                    file.is_some_and(|file| duties::requirements(unit, file).is_singleton);
                if is_singleton && desired.state == DesiredState::Launched {
                    desired.state = DesiredState::Loaded;
                }
            }
        }
        orders
    }

    /// Reads the files that are missing.
    async fn read_files(&mut self) -> Result<(), registry::Error> {
        let missing = self
            .duties
            .files()
            .filter(|(_, hash)| !self.files.contains_key(*hash));
        let missing: BTreeSet<String> = missing.map(|(unit, _)| unit.to_owned()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.into_iter().collect();
        for (unit, body) in self.agent.registry.find_bodies(&missing).await? {
            match Options::new(&body.options) {
                Ok(file) => _ = self.files.insert(file.hash().to_string(), file),
                Err(error) => tracing::warn!(unit, %error, "the file of a unit is unusable"),
            }
        }
        Ok(())
    }

    /// Forgets files that no unit has any more.
    fn drop_files(&mut self, orders: &Orders) {
        let desired = orders.desired.values().map(|desired| desired.hash.as_str());
        let used: BTreeSet<&str> = self
            .duties
            .files()
            .map(|(_, hash)| hash)
            .chain(desired)
            .collect();
        self.files.retain(|hash, _| used.contains(hash.as_str()));
    }

    /// The machine leaves the cluster at once, not when its lease runs out.
    async fn deregister(&mut self) {
        let Some(registration) = self.units.memory.registration.take() else {
            return;
        };
        self.units.remember();
        if let Err(error) = self.agent.registry.deregister_machine(registration).await {
            tracing::warn!(
                error = chain(&error),
                "the machine's lease could not be ended; it runs out"
            );
        }
    }
}

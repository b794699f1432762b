//! A simulated systemd, for many agents at once, and for behaviour that a real one does not show on request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyperfleet_fleet::agent::{Connect, Error, Origin, Systemd, SystemdSignal, SystemdState};
use tokio::sync::broadcast;

/// Most signals that wait for an agent.
const SIGNALS_MAX: usize = 4096;

/// One machine's systemd. Clones share it.
#[derive(Debug, Clone)]
pub struct SimulatedSystemd {
    state: Arc<Mutex<State>>,
    signals: broadcast::Sender<SystemdSignal>,
}

/// The state of a simulated systemd, and its deviations from usual behaviour.
#[derive(Debug, Default)]
pub struct State {
    /// Linked unit files by unit.
    linked: BTreeMap<String, PathBuf>,
    /// Their contents at the last reload.
    loaded: BTreeMap<String, String>,
    pub enabled: BTreeSet<String>,
    /// Running units, each with the file at its start.
    pub running: BTreeMap<String, String>,
    /// Units that have failed since their last start.
    failed: BTreeSet<String>,
    /// Units that stop only at [`SimulatedSystemd::finish_stopping`].
    pub stops_slowly: BTreeSet<String>,
    stopping: BTreeSet<String>,
    /// Units that start only at [`SimulatedSystemd::finish_queueing`].
    pub starts_queued: BTreeSet<String>,
    queued: BTreeSet<String>,
    /// Units of which every task fails.
    pub refused: BTreeSet<String>,
    /// Whether reloads fail.
    pub refuses_reload: bool,
    /// Whether it is unreachable.
    pub is_away: bool,
    /// Duration of each call.
    pub delay: Duration,
    /// How often it was started.
    pub boots: u32,
    /// All calls, oldest first.
    pub calls: Vec<String>,
    /// Units that were stopped, oldest first.
    pub stopped: Vec<String>,
}

/// A connection to it.
#[derive(Debug)]
pub struct SimulatedConnection {
    systemd: SimulatedSystemd,
    signals: broadcast::Receiver<SystemdSignal>,
}

impl SimulatedSystemd {
    pub fn new() -> Self {
        Self {
            state: Arc::default(),
            signals: broadcast::channel(SIGNALS_MAX).0,
        }
    }

    /// Reads or changes its state.
    pub fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals a changed unit state.
    fn signal(&self, unit: &str) {
        let unit = unit.to_owned();
        self.send(SystemdSignal::Changed { unit });
    }

    /// Signals a start that left the queue.
    fn signal_start(&self, unit: &str) {
        self.signal(unit);
        let unit = unit.to_owned();
        self.send(SystemdSignal::Started { unit });
    }

    fn send(&self, signal: SystemdSignal) {
        // There may be no listener.
        let _ = self.signals.send(signal);
    }

    /// Completes the stop of a unit.
    pub fn finish_stopping(&self, unit: &str) {
        self.with(|state| state.stopping.remove(unit));
        self.signal(unit);
    }

    /// Starts a unit whose start was queued.
    pub fn finish_queueing(&self, unit: &str) {
        self.with(|state| {
            if state.queued.remove(unit) {
                let file = state.loaded[unit].clone();
                state.running.insert(unit.to_owned(), file);
            }
        });
        self.signal_start(unit);
    }

    /// Ends the queued start of a unit with the result of a job, such as `dependency`.
    pub fn refuse_queued(&self, unit: &str, result: &str) {
        self.with(|state| state.queued.remove(unit));
        self.signal(unit);
        let (unit, result) = (unit.to_owned(), result.to_owned());
        self.send(SystemdSignal::NotStarted { unit, result });
    }

    /// Starts a loaded unit for another one, as for a unit that wants it.
    pub fn start_by_itself(&self, unit: &str) {
        self.with(|state| {
            let file = state.loaded[unit].clone();
            state.running.insert(unit.to_owned(), file);
        });
        self.signal(unit);
    }

    /// Ends a unit with a failure.
    pub fn fail(&self, unit: &str) {
        self.with(|state| {
            state.running.remove(unit);
            state.failed.insert(unit.to_owned());
        });
        self.signal(unit);
    }

    /// Ends a unit by itself.
    pub fn end(&self, unit: &str) {
        self.with(|state| state.running.remove(unit));
        self.signal(unit);
    }

    /// Boots the machine: nothing runs, and nothing is known.
    pub fn boot(&self) {
        self.with(|state| {
            *state = State {
                boots: state.boots + 1,
                delay: state.delay,
                ..State::default()
            };
        });
    }
}

impl Connect for SimulatedSystemd {
    type Systemd = SimulatedConnection;

    async fn connect(&self) -> Result<SimulatedConnection, Error> {
        let connection = SimulatedConnection {
            systemd: self.clone(),
            signals: self.signals.subscribe(),
        };
        connection.state("connect").map(drop)?;
        Ok(connection)
    }
}

impl SimulatedConnection {
    async fn pause(&self) {
        let delay = self.systemd.with(|state| state.delay);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    fn state(&self, doing: &'static str) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.systemd.lock();
        if state.is_away {
            let message = "it is away".to_owned();
            return Err(Error::Unreachable { doing, message });
        }
        Ok(state)
    }

    /// Records a call about a unit.
    fn call(&self, doing: &'static str, unit: &str) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.state(doing)?;
        state.calls.push(format!("{doing} {unit}"));
        if state.refused.contains(unit) {
            let message = "it is refused".to_owned();
            return Err(Error::Refused { doing, message });
        }
        Ok(state)
    }
}

fn name(file: &Path) -> String {
    let name = file.file_name().expect("a unit file has a name");
    name.to_string_lossy().into_owned()
}

impl Systemd for SimulatedConnection {
    async fn instance(&self) -> Result<String, Error> {
        self.pause().await;
        Ok(self.state("instance")?.boots.to_string())
    }

    async fn states(&self, units: Vec<String>) -> Result<BTreeMap<String, SystemdState>, Error> {
        self.pause().await;
        let state = self.state("states")?;
        let states = units.into_iter().map(|unit| {
            let load = if state.loaded.contains_key(&unit) {
                "loaded"
            } else {
                "not-found"
            };
            let (active, sub) = if state.stopping.contains(&unit) {
                ("deactivating", "stop-sigterm")
            } else if state.running.contains_key(&unit) {
                ("active", "running")
            } else if state.failed.contains(&unit) {
                ("failed", "failed")
            } else {
                ("inactive", "dead")
            };
            let [load, active, sub] = [load, active, sub].map(str::to_owned);
            let start_is_queued = state.queued.contains(&unit);
            let state = SystemdState {
                load,
                active,
                sub,
                start_is_queued,
            };
            (unit, state)
        });
        Ok(states.collect())
    }

    async fn missing_triggered(&self, unit: &str) -> Result<Vec<String>, Error> {
        self.pause().await;
        let state = self.state("missing_triggered")?;
        let stem = unit.strip_suffix(".timer");
        let triggered = stem.map(|stem| format!("{stem}.service"));
        let missing = triggered.filter(|unit| !state.loaded.contains_key(unit));
        Ok(missing.into_iter().collect())
    }

    async fn result(&self, _unit: &str) -> Result<String, Error> {
        self.pause().await;
        self.state("result").map(|_| "exit-code".to_owned())
    }

    async fn invocation(&self, _unit: &str) -> Result<Vec<u8>, Error> {
        self.pause().await;
        self.state("invocation").map(|_| Vec::new())
    }

    async fn origin(&self, unit: &str) -> Result<Origin, Error> {
        self.pause().await;
        let state = self.state("origin")?;
        let path = state
            .linked
            .get(unit)
            .filter(|_| state.loaded.contains_key(unit));
        Ok(path.map_or(Origin::None, |path| Origin::File(path.clone())))
    }

    async fn link(&self, file: &Path) -> Result<(), Error> {
        self.pause().await;
        let unit = name(file);
        let mut state = self.call("link", &unit)?;
        state.linked.insert(unit, file.to_owned());
        Ok(())
    }

    async fn enable(&self, file: &Path) -> Result<(), Error> {
        self.pause().await;
        let unit = name(file);
        let mut state = self.call("enable", &unit)?;
        state.enabled.insert(unit);
        Ok(())
    }

    async fn disable(&self, unit: &str) -> Result<(), Error> {
        self.pause().await;
        let mut state = self.call("disable", unit)?;
        state.enabled.remove(unit);
        state.linked.remove(unit);
        Ok(())
    }

    async fn reset_failed(&self, _unit: &str) -> Result<(), Error> {
        self.pause().await;
        self.state("reset_failed").map(drop)
    }

    async fn reload(&self) -> Result<(), Error> {
        self.pause().await;
        let mut state = self.state("reload")?;
        state.calls.push("reload".to_owned());
        if state.refuses_reload {
            let message = "it is refused".to_owned();
            return Err(Error::Refused {
                doing: "reload",
                message,
            });
        }
        let linked = state.linked.iter();
        let read = linked.filter_map(|(unit, file)| {
            let text = std::fs::read_to_string(file).ok()?;
            Some((unit.clone(), text))
        });
        state.loaded = read.collect();
        Ok(())
    }

    async fn start(&self, unit: &str) -> Result<(), Error> {
        self.pause().await;
        let mut state = self.call("start", unit)?;
        let Some(file) = state.loaded.get(unit).cloned() else {
            let message = unit.to_owned();
            return Err(Error::NoSuchUnit { message });
        };
        // As in systemd: a start comes after a stop in progress, and does not affect a running unit.
        state.stopping.remove(unit);
        state.failed.remove(unit);
        let is_queued = state.starts_queued.contains(unit) && !state.running.contains_key(unit);
        if is_queued {
            state.queued.insert(unit.to_owned());
        } else {
            state.queued.remove(unit);
            state.running.entry(unit.to_owned()).or_insert(file);
        }
        drop(state);
        if is_queued {
            self.systemd.signal(unit);
        } else {
            self.systemd.signal_start(unit);
        }
        Ok(())
    }

    async fn restart(&self, unit: &str) -> Result<(), Error> {
        self.pause().await;
        let mut state = self.call("restart", unit)?;
        let Some(file) = state.loaded.get(unit).cloned() else {
            let message = unit.to_owned();
            return Err(Error::NoSuchUnit { message });
        };
        state.stopping.remove(unit);
        state.failed.remove(unit);
        if state.starts_queued.contains(unit) {
            state.running.remove(unit);
            state.queued.insert(unit.to_owned());
            drop(state);
            self.systemd.signal(unit);
            return Ok(());
        }
        state.running.insert(unit.to_owned(), file);
        drop(state);
        self.systemd.signal_start(unit);
        Ok(())
    }

    async fn stop(&self, unit: &str) -> Result<(), Error> {
        self.pause().await;
        let mut state = self.call("stop", unit)?;
        state.queued.remove(unit);
        if state.running.remove(unit).is_some() {
            state.stopped.push(unit.to_owned());
            if state.stops_slowly.contains(unit) {
                state.stopping.insert(unit.to_owned());
            }
        }
        drop(state);
        self.systemd.signal(unit);
        Ok(())
    }

    async fn next_signal(&mut self) -> Result<SystemdSignal, Error> {
        loop {
            match self.signals.recv().await {
                Ok(signal) => {
                    drop(self.state("listen")?);
                    return Ok(signal);
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                // The sender lives as long as this.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

//! Explains why a unit is where it is, or on no machine.

use std::collections::BTreeMap;

use super::mirror::Picture;
use super::reasons::Why;
use super::view::{current, unit_view};
use super::{Error, ExplanationView, Fleet};
use crate::keys::KeyStore;
use crate::registry::{Key, Moved, RunKey, StateKey, UnitRecord, UnitState};
use hyperfleet_fleet_model::schedule::{
    self, Availability, EXAMPLES_MAX, Job, MachineId, Refusal, globals_on,
};
use hyperfleet_fleet_model::unit::{DesiredState, UnitName, unmet};

impl<S: KeyStore> Fleet<S> {
    /// Explains why a unit is where it is, or on no machine. The unit itself is read from etcd, and other
    /// machines and units from the mirror, which is not older than the unit.
    ///
    /// # Errors
    /// [`Error::NoUnit`]; [`Error::Unavailable`] while the mirror is not connected or behind the unit.
    pub async fn explain(&self, name: &str) -> Result<ExplanationView, Error> {
        let unit = self.stored_unit(name).await?;
        let state = self.state_of(&unit).await?;
        if !self.mirror.reaches(unit.revision()).await {
            return Err(Error::Unavailable(None));
        }
        let is_global = unit.body.value.global.is_some();
        let placement = unit
            .placement
            .as_ref()
            .map(|placement| placement.value.machine.as_str());
        // Unreadable records come first: they overrule every other explanation.
        let stays = placement.and_then(|machine| self.stays(name, machine));
        let why = match (stays, unit.desired.value.state, placement) {
            (Some(reason), ..) => Why::passing(reason),
            (None, DesiredState::Inactive, _) => Why::passing(inactive(&unit)),
            _ if is_global => Why::passing(self.global(name).await),
            (None, _, Some(machine)) => {
                let state = state.as_ref().map(|state| &state.value);
                let is_blocked = state.is_some_and(|state| !state.error.is_empty());
                let moved = unit.placement.as_ref();
                let moved = moved.and_then(|placement| placement.value.moved.as_ref());
                let moved = moved.map_or_else(String::new, |Moved { from, reason }| {
                    format!("; moved from {from} ({reason})")
                });
                let reason = self.explain_placed(&unit, machine, state) + &moved;
                let (reason, refusals) = match self.stuck(name, machine).await? {
                    Some(why) => (format!("{reason}; {}", why.reason), why.refusals),
                    None => (reason, Vec::new()),
                };
                Why {
                    is_blocked,
                    refusals,
                    ..Why::passing(reason)
                }
            }
            (None, _, None) => self.unplaced(name).await?,
        };
        let unit = unit_view((unit, state));
        Ok(ExplanationView {
            blocked: why.is_blocked,
            current: unit.current,
            desired: unit.desired,
            machine: unit.machine,
            name: unit.name,
            reason: why.reason,
            refusals: why.refusals,
        })
    }

    /// The first unreadable key among some.
    fn first_unreadable(&self, keys: &[Key]) -> Option<String> {
        let is_unreadable =
            |picture: &Picture, key: &&Key| picture.snapshot.unreadable.contains_key(key);
        let key = self
            .mirror
            .read(|picture| keys.iter().find(|key| is_unreadable(picture, key)))?;
        Some(format!("etcd key {:?}", self.registry.name(key)))
    }

    /// Why the engine leaves a unit on its machine whatever its desired state; `None` if it does not.
    fn stays(&self, unit: &str, machine: &str) -> Option<String> {
        let keys = [Key::Machine(machine.to_owned()), Key::run(machine, unit)];
        let key = self
            .first_unreadable(&keys)
            .or_else(|| self.unreadable_run(unit))?;
        Some(format!(
            "placed on {machine}, and pinned there: this version of fleet cannot read {key}"
        ))
    }

    /// A machine's unreadable `run/` of a unit: the engine does not place such a unit.
    fn unreadable_run(&self, unit: &str) -> Option<String> {
        let run = self.mirror.read(|picture| {
            let machine = picture.snapshot.unreadable_runs(unit).next()?;
            Some(Key::run(machine, unit))
        });
        Some(format!("etcd key {:?}", self.registry.name(&run?)))
    }

    /// Why a unit is on no machine.
    async fn unplaced(&self, unit: &str) -> Result<Why, Error> {
        if let Some(key) = self.unreadable_run(unit) {
            let reason = format!(
                "on no machine, and placed on none: this version of fleet cannot read {key}"
            );
            return Ok(Why::passing(reason));
        }
        let why = self.why(unit).await?;
        let is_led = self
            .mirror
            .read(|picture| picture.snapshot.leader.is_some());
        // Without an engine nothing is about to happen.
        let why = why.filter(|why| why.is_blocked || is_led);
        Ok(why.unwrap_or_else(|| Why::passing(self.waiting())))
    }

    /// Why a unit stays on a drained machine; `None` if it need not leave.
    async fn stuck(&self, unit: &str, machine: &str) -> Result<Option<Why>, Error> {
        let availability = |picture: &Picture| picture.snapshot.availability(machine);
        if self.mirror.read(availability) != Availability::Draining {
            return Ok(None);
        }
        let why = self.why(unit).await?;
        Ok(why.map(|why| Why {
            reason: format!("{machine} is being drained, but {}", why.reason),
            ..why
        }))
    }

    /// Why a unit needs another machine and has none, by the rules that place units.
    async fn why(&self, unit: &str) -> Result<Option<Why>, Error> {
        let cluster = self.mirror.cluster().await;
        let cluster = cluster.map_err(|_| Error::Unavailable(None))?;
        Ok(Why::of(&cluster, unit))
    }

    fn explain_placed(
        &self,
        unit: &UnitRecord,
        machine: &str,
        state: Option<&UnitState>,
    ) -> String {
        let is_there = self
            .mirror
            .read(|picture| picture.snapshot.machines.contains_key(machine));
        if !is_there {
            return format!("placed on {machine}, which is gone: about to be moved");
        }
        let report = Key::State(StateKey {
            unit: unit.name.clone(),
            machine: machine.to_owned(),
        });
        if state.is_none()
            && let Some(key) = self.first_unreadable(&[report])
        {
            return format!(
                "placed on {machine}: this version of fleet cannot read its report, {key}"
            );
        }
        if let Some(UnitState { error, .. }) = state
            && !error.is_empty()
        {
            return format!("placed on {machine}, where it is not in its desired state: {error}");
        }
        if let Some(failure) = state.and_then(failure) {
            return format!("placed on {machine}, where it has {failure}");
        }
        match current(state, unit.desired.value.restarts) {
            DesiredState::Inactive => format!("placed on {machine}, which has not reported it yet"),
            current => format!("placed on {machine}, and {current} there"),
        }
    }

    fn waiting(&self) -> String {
        if let Some(key) = self.first_unreadable(&[Key::Leader]) {
            return format!(
                "not looked at yet: this version of fleet cannot read who leads, {key}"
            );
        }
        let leader = self.mirror.read(|picture| {
            let leader = picture.snapshot.leader.as_ref();
            leader.map(|leader| leader.value.id.clone())
        });
        match leader {
            None => "not looked at yet: no engine leads".to_owned(),
            Some(id) => format!("not looked at yet: the engine on {id} has yet to do so"),
        }
    }

    /// Machine by machine, so that the mirror is never locked for long.
    async fn global(&self, name: &str) -> String {
        let (ids, unread) = self.mirror.read(|picture| {
            let ids: Vec<String> = picture.snapshot.machines.keys().cloned().collect();
            let machines = picture.snapshot.unreadable.keys();
            let machines = machines.filter(|key| matches!(key, Key::Machine(_)));
            (ids, machines.count())
        });
        let (mut on, mut refused) = (Vec::new(), BTreeMap::<String, Vec<&str>>::new());
        for id in &ids {
            match self.mirror.read(|picture| refusal(picture, name, id)) {
                None => on.push(id.as_str()),
                Some(why) => refused.entry(why).or_default().push(id),
            }
            tokio::task::yield_now().await;
        }
        let count = ids.len();
        let beside = match unread {
            0 => String::new(),
            count => format!(", not counting {count} that this version of fleet cannot read"),
        };
        if on.is_empty() {
            let why = refused.iter().take(EXAMPLES_MAX).map(|(why, machines)| {
                let of = machines.len();
                format!("{why}: {of} of them ({})", some(machines))
            });
            let mut why = why.collect::<Vec<_>>().join("; ");
            if !why.is_empty() {
                why.insert_str(0, ": ");
            }
            return format!("global: belongs on none of {count} machines{beside}{why}");
        }
        let (of, some) = (on.len(), some(&on));
        let failing = self.failing(name);
        format!("global: belongs on {of} of {count} machines ({some}){beside}{failing}")
    }

    /// The first machine on which a unit is not in its desired state, with the error; or else those on which it has failed.
    fn failing(&self, name: &str) -> String {
        self.mirror.read(|picture| {
            let states: Vec<_> = picture.snapshot.states_of(name).collect();
            let failing = states
                .iter()
                .find(|(_, state)| !state.value.error.is_empty());
            if let Some((key, state)) = failing {
                let (machine, error) = (&key.machine, &state.value.error);
                return format!("; on {machine} it is not in its desired state: {error}");
            }
            let failed = states.iter();
            let failed = failed.filter_map(|(key, state)| Some((key, failure(&state.value)?)));
            let failed: Vec<_> = failed.collect();
            failed.first().map_or_else(String::new, |(_, failure)| {
                let machines: Vec<_> = failed.iter().map(|(key, _)| key.machine.as_str()).collect();
                let (of, some) = (machines.len(), some(&machines));
                format!("; it has {failure} on {of} of them ({some})")
            })
        })
    }
}

fn inactive(unit: &UnitRecord) -> String {
    match &unit.placement {
        None => "inactive: it needs no machine".to_owned(),
        Some(placement) => {
            let machine = &placement.value.machine;
            format!("inactive: about to leave {machine}")
        }
    }
}

/// The first of these machines.
fn some(machines: &[&str]) -> String {
    let more = if machines.len() > EXAMPLES_MAX {
        ", …"
    } else {
        ""
    };
    let some = machines[..machines.len().min(EXAMPLES_MAX)].join(", ");
    format!("{some}{more}")
}

/// Why systemd says that a unit has failed; `None` if it has not.
fn failure(state: &UnitState) -> Option<String> {
    let result = match state.result.as_str() {
        "" => String::new(),
        result => format!(" ({result})"),
    };
    (state.active == "failed").then(|| format!("failed{result}"))
}

/// Why a global unit does not belong on a machine; `None` if it does.
fn refusal(picture: &Picture, name: &str, machine: &str) -> Option<String> {
    let snapshot = &picture.snapshot;
    let metadata = snapshot.metadata(machine);
    let global = snapshot
        .bodies
        .get(name)
        .and_then(|b| b.value.global.as_ref());
    let (true, Some(rule)) = (snapshot.machines.contains_key(machine), global) else {
        return Some("gone".to_owned());
    };
    if let Some((key, values)) = unmet(&rule.metadata, &metadata) {
        return Some(Refusal::Metadata(key, values).to_string());
    }
    let first = RunKey {
        machine: machine.to_owned(),
        unit: String::new(),
    };
    let runs = snapshot.runs.range(first..).map(|(key, _)| key);
    let runs = runs.take_while(|key| key.machine == machine);
    let placed: Vec<Job> = runs.filter_map(|key| job(picture, &key.unit)).collect();
    let globals = snapshot.globals.keys();
    let globals: Vec<Job> = globals.filter_map(|unit| job(picture, unit)).collect();
    let machine = schedule::Machine::new(MachineId::new(machine), metadata);
    let on = globals_on(&machine, &placed, &globals);
    if on.iter().any(|unit| unit.as_str() == name) {
        return None;
    }
    let beside = globals.iter().filter(|job| on.contains(&&job.name));
    let placed = placed.iter().filter(|job| job.desired.is_active());
    let mut beside = placed.chain(beside);
    let own = rule.requirements();
    let rival = beside
        .find(|job| own.conflicts_with(job.name.as_str()) || job.requirements.conflicts_with(name));
    Some(rival.map_or_else(
        || "inactive".to_owned(),
        |job| format!("Conflicts with {}", job.name),
    ))
}

/// A unit as decisions see it.
fn job(picture: &Picture, name: &str) -> Option<Job> {
    let body = &picture.snapshot.bodies.get(name)?.value;
    let placement = picture.snapshot.placements.get(name);
    let placed_on = placement.map(|placement| MachineId::new(placement.value.machine.as_str()));
    let desired = picture.snapshot.desired.get(name)?.value.state;
    let requirements = body.requirements(name);
    Some(Job::new(
        UnitName::stored(name),
        requirements,
        desired,
        placed_on,
    ))
}

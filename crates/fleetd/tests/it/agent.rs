//! fleetd on a real systemd: units start, stop and are replaced, and nothing else is touched.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use hyperfleet_testkit::{PrivateSystemd, fresh_prefix, shared_etcd_url, until};

use super::fleet_socket::SLEEP;
use super::program::Fleetd;

/// A machine: its systemd, and the settings of its fleetd.
pub(super) struct Machine {
    pub(super) systemd: PrivateSystemd,
    pub(super) etcd: String,
    pub(super) prefix: String,
}

impl Machine {
    /// `None` where no systemd can run.
    pub(super) async fn new() -> Option<Self> {
        Self::on(shared_etcd_url().await).await
    }

    async fn on(etcd: String) -> Option<Self> {
        Some(Self {
            systemd: PrivateSystemd::start().await?,
            etcd,
            prefix: fresh_prefix(),
        })
    }

    fn units(&self) -> PathBuf {
        self.systemd.home().join("units")
    }

    fn socket(&self) -> PathBuf {
        self.systemd.home().join("fleet.sock")
    }

    fn file(&self) -> PathBuf {
        self.systemd.home().join("fleet.conf")
    }

    pub(super) fn listen(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    fn spawn(&self, settings: &[(&str, &str)]) -> Fleetd {
        let mut command = self
            .systemd
            .command(Path::new(env!("CARGO_BIN_EXE_fleetd")));
        command
            .env("FLEET_ETCD_SERVERS", &self.etcd)
            .env("FLEET_ETCD_KEY_PREFIX", &self.prefix)
            .env("FLEET_MACHINE_ID", "m1")
            .env("FLEET_AGENT_TTL", "6s")
            .env("FLEET_SYSTEMD_USER", "true")
            .env("FLEET_UNITS_DIRECTORY", self.units())
            .env("FLEET_LISTEN", self.listen())
            .stdin(Stdio::null());
        for (key, value) in settings {
            command.env(format!("FLEET_{}", key.to_uppercase()), value);
        }
        let file = self.file();
        if file.exists() {
            command.arg("--config").arg(file);
        }
        Fleetd::start(command, self.socket())
    }

    /// Starts fleetd, and waits until its machine is a member of the cluster.
    pub(super) async fn start(&self) -> Fleetd {
        self.start_with(&[]).await
    }

    /// Starts it with additional settings.
    pub(super) async fn start_with(&self, settings: &[(&str, &str)]) -> Fleetd {
        let fleetd = self.spawn(settings);
        until("the machine is a member", async || {
            let machines = fleetd.get("/fleet/v1/machines").await;
            machines.is_some_and(|(_, body)| body["machines"][0]["id"] == "m1")
        })
        .await;
        fleetd
    }

    pub(super) fn main_pid(&self, unit: &str) -> String {
        self.systemd.property(unit, "MainPID")
    }

    pub(super) fn is(&self, unit: &str, state: &str) -> bool {
        self.systemd.property(unit, "ActiveState") == state
    }
}

#[tokio::test]
async fn units_start_stop_and_go() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    api.put("a.service", &SLEEP, "launched").await;
    api.put("b.service", &SLEEP, "loaded").await;
    api.until_state("a.service", "active").await;
    api.until_state("b.service", "inactive").await;
    assert!(machine.is("a.service", "active") && machine.is("b.service", "inactive"));
    let state = api.state("a.service").await;
    assert_eq!(
        (&state["systemdLoadState"], &state["systemdSubState"]),
        (&"loaded".into(), &"running".into())
    );
    assert_eq!(state["machineID"], "m1");
    let file = std::fs::read_to_string(machine.units().join("a.service")).unwrap();
    assert_eq!(file, "[Service]\nExecStart=/bin/sleep 1000\n");

    api.put("a.service", &[], "loaded").await;
    api.until_state("a.service", "inactive").await;
    api.put("a.service", &[], "launched").await;
    api.until_state("a.service", "active").await;
    // A unit that dies is reported by a signal, and fleet does not restart it.
    machine
        .systemd
        .systemctl(&["kill", "--signal=KILL", "a.service"]);
    api.until_state("a.service", "failed").await;
    api.until_explained("a.service", "on m1, where it has failed (signal)")
        .await;
    api.put("a.service", &[], "inactive").await;
    api.destroy("b.service").await;
    until("both are gone", async || {
        let load = |unit: &str| machine.systemd.property(unit, "LoadState");
        load("a.service") == "not-found" && load("b.service") == "not-found"
    })
    .await;
    until("nothing is reported of them", async || {
        let states = fleetd.get("/fleet/v1/state").await.unwrap().1;
        states == json!({})
    })
    .await;
    assert!(!machine.units().join("a.service").exists());
}

#[tokio::test]
async fn each_role_can_run_in_a_process_of_its_own() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    // They have the same socket in their settings. Only one uses it.
    let one = |role: &str| {
        let others = ["disable_api", "disable_engine", "disable_agent"];
        let others = others.into_iter().filter(|key| !key.ends_with(role));
        machine.spawn(&others.map(|key| (key, "true")).collect::<Vec<_>>())
    };
    let fleetd = one("api");
    fleetd.until_serving().await;
    let api = fleetd.api();
    api.put("a.service", &SLEEP, "launched").await;
    let mut agent = one("agent");
    until("the machine is a member", async || {
        let machines = fleetd.get("/fleet/v1/machines").await;
        machines.is_some_and(|(_, body)| body["machines"][0]["id"] == "m1")
    })
    .await;
    let unit = fleetd.get("/fleet/v1/units/a.service").await.unwrap().1;
    assert_eq!(
        unit.get("machineID"),
        None,
        "no engine has placed it: {unit}"
    );
    let mut engine = one("engine");
    api.until_state("a.service", "active").await;
    for other in [&mut engine, &mut agent] {
        other.stop().await;
    }
    assert!(machine.is("a.service", "active"));
    fleetd.until_serving().await;
}

#[tokio::test]
async fn a_new_file_replaces_the_first_once_that_has_stopped() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let journal = machine.systemd.home().join("journal");
    let says = |word: &str| format!("/bin/sh -c 'echo {word} >> {}'", journal.display());
    let lines = |number: usize| {
        vec![
            format!("Service ExecStartPre={}", says(&format!("start{number}"))),
            "Service ExecStart=/bin/sleep 1000".to_owned(),
            "Service ExecStop=/bin/sleep 1".to_owned(),
            format!("Service ExecStopPost={}", says(&format!("stopped{number}"))),
        ]
    };
    // systemd keeps a unit that another one names, even without its file.
    let side = [SLEEP[0], "Unit After=a.service"];
    api.put("side.service", &side, "launched").await;
    api.until_state("side.service", "active").await;
    for number in 1..=3 {
        let lines = lines(number);
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        api.put("a.service", &lines, "launched").await;
        until("its file runs", async || {
            let said = std::fs::read_to_string(&journal).unwrap_or_default();
            said.ends_with(&format!("start{number}\n")) && machine.is("a.service", "active")
        })
        .await;
    }
    let said = std::fs::read_to_string(&journal).unwrap();
    let said: Vec<_> = said.lines().collect();
    assert_eq!(said, ["start1", "stopped1", "start2", "stopped2", "start3"]);
    let log = fleetd.output();
    assert!(!log.contains("not in its desired state"), "{log}");
}

#[tokio::test]
async fn units_outlive_fleetd_and_what_has_finished_is_not_run_again() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let mut fleetd = machine.start().await;
    let api = fleetd.api();
    let journal = machine.systemd.home().join("journal");
    let run = format!(
        "Service ExecStart=/bin/sh -c 'echo run >> {}'",
        journal.display()
    );
    api.put("a.service", &SLEEP, "launched").await;
    let once = ["Service Type=oneshot", &run];
    api.put("once.service", &once, "launched").await;
    api.until_state("a.service", "active").await;
    until("it has run", async || journal.exists()).await;
    api.until_state("once.service", "inactive").await;
    let pid = machine.main_pid("a.service");
    assert_ne!(pid, "0");
    for signal in [Signal::TERM, Signal::KILL] {
        fleetd.signal(signal);
        fleetd.ended().await;
        assert!(machine.is("a.service", "active"), "{signal:?}");
        // Its lease has not expired meanwhile, so nothing moves and nothing waits.
        fleetd = machine.start().await;
        api.put("b.service", &SLEEP, "launched").await;
        api.until_state("b.service", "active").await;
        assert_eq!(machine.main_pid("a.service"), pid, "{signal:?}");
        api.destroy("b.service").await;
    }
    api.until_state("a.service", "active").await;
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), "run\n");
}

/// systemd shows a waiting unit as inactive, like a finished one.
#[tokio::test]
async fn a_unit_queued_by_systemd_is_not_launched_yet() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let go = machine.systemd.home().join("go");
    let slow = format!(
        "Service ExecStart=/bin/sh -c 'until [ -e {} ]; do sleep 0.1; done'",
        go.display()
    );
    let slow = [
        "Service Type=oneshot",
        "Service RemainAfterExit=true",
        &slow,
    ];
    let queued = ["Unit After=slow.service", SLEEP[0]];
    let once = [
        "Unit After=slow.service",
        "Service Type=oneshot",
        "Service ExecStart=/bin/true",
    ];
    api.put("slow.service", &slow, "launched").await;
    api.until_state("slow.service", "activating").await;
    let waiting = ["queued.service", "once.service"];
    api.put(waiting[0], &queued, "launched").await;
    api.put(waiting[1], &once, "launched").await;
    let current = async |unit: &str| {
        let (_, unit) = api.get(&format!("/fleet/v1/units/{unit}")).await.unwrap();
        unit["currentState"].as_str().unwrap_or_default().to_owned()
    };
    for unit in waiting {
        api.until_state(unit, "inactive").await;
        until("its start is queued", async || {
            machine.systemd.property(unit, "Job") != "0"
        })
        .await;
    }
    // Its report was written after their starts were queued, and has all states.
    api.put("later.service", &SLEEP, "launched").await;
    api.until_state("later.service", "active").await;
    for unit in waiting {
        assert_eq!(current(unit).await, "loaded", "{unit}");
    }
    assert_eq!(current("slow.service").await, "launched");
    std::fs::write(&go, "").unwrap();
    api.until_state("queued.service", "active").await;
    for unit in waiting {
        until(&format!("{unit} is launched"), async || {
            current(unit).await == "launched"
        })
        .await;
    }
    assert_eq!(
        api.state("once.service").await["systemdActiveState"],
        "inactive"
    );
}

#[tokio::test]
async fn a_unit_with_a_failed_requirement_is_retried() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let mut fleetd = machine.start().await;
    let home = machine.systemd.home();
    let (go, tries) = (home.join("go"), home.join("tries"));
    let base = format!(
        "Service ExecStart=/bin/sh -c 'echo try >> {}; sleep 0.3; test -e {}'",
        tries.display(),
        go.display()
    );
    let base = [
        "Service Type=oneshot",
        "Service RemainAfterExit=true",
        &base,
    ];
    let behind = [
        "Unit Requires=base.service",
        "Unit After=base.service",
        SLEEP[0],
    ];
    fleetd.api().put("base.service", &base, "loaded").await;
    fleetd.api().until_state("base.service", "inactive").await;
    fleetd
        .api()
        .put("behind.service", &behind, "launched")
        .await;
    let reason = "a unit that it requires did not start";
    fleetd.api().until_explained("behind.service", reason).await;
    let is_tried = async |times: usize| {
        until("it is tried again", async || {
            let (_, unit) = fleetd.get("/fleet/v1/units/behind.service").await.unwrap();
            assert_eq!(unit["currentState"], "loaded");
            let tries = std::fs::read_to_string(&tries).unwrap();
            tries.lines().count() >= times
        })
        .await;
    };
    is_tried(3).await;
    // While fleetd is down systemd cancels it once more.
    fleetd.signal(Signal::KILL);
    fleetd.ended().await;
    fleetd = machine.start().await;
    fleetd.api().until_explained("behind.service", reason).await;
    std::fs::write(&go, "").unwrap();
    fleetd.api().until_state("behind.service", "active").await;
    until("nothing is wrong with it any more", async || {
        fleetd.api().explained("behind.service").await == "placed on m1, and launched there"
    })
    .await;
}

#[tokio::test]
async fn units_that_fleet_did_not_write_are_not_changed() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    machine.systemd.write(
        ".config/systemd/user/foreign.service",
        "[Service]\nExecStart=/bin/sleep 2000\n",
    );
    machine.systemd.systemctl(&["daemon-reload"]);
    machine.systemd.systemctl(&["start", "foreign.service"]);
    let pid = machine.main_pid("foreign.service");
    assert_ne!(pid, "0");
    let fleetd = machine.start().await;
    let api = fleetd.api();
    api.put("foreign.service", &SLEEP, "launched").await;
    // Other units do not wait for it.
    api.put("own.service", &SLEEP, "launched").await;
    api.until_state("own.service", "active").await;
    api.until_explained("foreign.service", "that fleet did not write")
        .await;
    assert_eq!(
        api.state("foreign.service").await["systemdLoadState"],
        "error"
    );
    api.put("foreign.service", &[], "loaded").await;
    api.put("foreign.service", &[], "inactive").await;
    api.destroy("foreign.service").await;
    api.put("last.service", &SLEEP, "launched").await;
    api.until_state("last.service", "active").await;
    assert_eq!(machine.main_pid("foreign.service"), pid);
    let path = machine.systemd.property("foreign.service", "FragmentPath");
    assert!(
        path.ends_with(".config/systemd/user/foreign.service"),
        "{path}"
    );
}

/// A process that fleet has started is not lost from sight when the machine gets a unit of the same name.
#[tokio::test]
async fn a_unit_that_becomes_the_machines_own_is_shown_while_it_runs() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let units = ["a.service", "b.service"];
    for unit in units {
        api.put(unit, &SLEEP, "launched").await;
        api.until_state(unit, "active").await;
        let file = format!(".config/systemd/user/{unit}");
        let text = "[Service]\nExecStart=/bin/sleep 2000\n";
        machine.systemd.write(&file, text);
    }
    machine.systemd.systemctl(&["daemon-reload"]);
    let pids = units.map(|unit| machine.main_pid(unit));
    for unit in units {
        api.destroy(unit).await;
    }
    until("fleet says that they run on", async || {
        fleetd.output().matches("may have started").count() == units.len()
    })
    .await;
    for (unit, pid) in units.iter().zip(&pids) {
        assert_eq!(api.state(unit).await["systemdActiveState"], "active");
        assert_eq!(machine.main_pid(unit), *pid);
    }
    // From here on they are the machine's.
    machine.systemd.systemctl(&["stop", "a.service"]);
    machine.systemd.systemctl(&["restart", "b.service"]);
    until("fleet has forgotten them", async || {
        api.list("state").await.is_empty()
    })
    .await;
    assert!(machine.is("a.service", "inactive") && machine.is("b.service", "active"));
    assert_ne!(machine.main_pid("b.service"), pids[1]);
}

#[tokio::test]
async fn units_are_enabled_by_their_own_files() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let side = [
        "Service ExecStart=/bin/sleep 1000",
        "Install WantedBy=a.service",
    ];
    api.put("side.service", &side, "loaded").await;
    api.until_state("side.service", "inactive").await;
    let enabled = machine.systemd.systemctl(&["is-enabled", "side.service"]);
    assert_eq!(
        String::from_utf8(enabled.stdout).unwrap().trim(),
        "enabled-runtime"
    );
    let odd = ["Service ExecStart=/bin/sleep 1000", "Install Foo=bar"];
    api.put("odd.service", &odd, "launched").await;
    api.put("a.service", &SLEEP, "launched").await;
    api.until_state("a.service", "active").await;
    api.until_state("side.service", "active").await;
    api.until_explained("odd.service", "Failed to enable systemd unit odd.service")
        .await;
    // Another file may succeed.
    api.put("odd.service", &SLEEP, "launched").await;
    api.until_state("odd.service", "active").await;
    assert_eq!(
        api.explained("odd.service").await,
        "placed on m1, and launched there"
    );
}

/// A name that fleet accepts and systemd does not.
#[tokio::test]
async fn what_systemd_refuses_holds_up_no_other_unit() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    api.put("a.snapshot", &["Unit Description=odd"], "launched")
        .await;
    api.put("b.service", &["Service Type=simple"], "launched")
        .await;
    api.put("c.service", &SLEEP, "launched").await;
    api.until_state("c.service", "active").await;
    api.until_explained("a.snapshot", "a.snapshot").await;
    let said = api.explained("a.snapshot").await;
    assert!(
        said.contains("where it is not in its desired state"),
        "{said}"
    );
    until("the file of b cannot be used", async || {
        api.state("b.service").await["systemdLoadState"] == "bad-setting"
    })
    .await;
    api.destroy("a.snapshot").await;
    api.destroy("b.service").await;
    until("both are gone", async || {
        let states = fleetd.get("/fleet/v1/state").await.unwrap().1;
        states["states"]
            .as_array()
            .is_some_and(|states| states.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn global_units_follow_the_metadata_of_the_machine() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let lines = [
        SLEEP[0],
        "X-Fleet Global=true",
        "X-Fleet MachineMetadata=zone=a",
    ];
    api.put("g.service", &lines, "launched").await;
    api.put("a.service", &SLEEP, "launched").await;
    api.until_state("a.service", "active").await;
    assert!(machine.is("g.service", "inactive"));
    let patch = async |op: &str| {
        let operation = json!({"op": op, "path": "/m1/metadata/zone", "value": {"value": "a"}});
        api.patch_machines(&json!([operation])).await
    };
    assert_eq!(patch("add").await, 204);
    api.until_state("g.service", "active").await;
    assert_eq!(patch("remove").await, 204);
    until("it has gone", async || {
        machine.systemd.property("g.service", "LoadState") == "not-found"
    })
    .await;
}

#[tokio::test]
async fn a_machine_that_leaves_stops_its_units() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let mut fleetd = machine.spawn(&[("shutdown_mode", "stop")]);
    fleetd.until_serving().await;
    let api = fleetd.api();
    for unit in ["a.service", "b.service"] {
        api.put(unit, &SLEEP, "launched").await;
        api.until_state(unit, "active").await;
    }
    fleetd.stop().await;
    for unit in ["a.service", "b.service"] {
        assert_eq!(machine.systemd.property(unit, "LoadState"), "not-found");
    }
    // At once, without waiting for its lease.
    let other = machine.spawn(&[("disable_agent", "true")]);
    other.until_serving().await;
    let (_, machines) = other.get("/fleet/v1/machines").await.unwrap();
    assert_eq!(machines, json!({}));
}

#[tokio::test]
async fn a_reload_changes_what_the_machine_says_of_itself() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    machine.systemd.write("fleet.conf", "metadata = zone=a\n");
    let mut fleetd = machine.start().await;
    let api = fleetd.api();
    let here = [SLEEP[0], "X-Fleet MachineMetadata=zone=b"];
    api.put("a.service", &here, "launched").await;
    let global = [here[0], here[1], "X-Fleet Global=true"];
    api.put("all.service", &global, "launched").await;
    api.until_explained("a.service", "no machine can run it")
        .await;
    let settings = "metadata = zone=b\npublic_ip = 192.0.2.9\nshutdown_mode = stop\n";
    machine.systemd.write("fleet.conf", settings);
    fleetd.signal(Signal::HUP);
    for unit in ["a.service", "all.service"] {
        api.until_state(unit, "active").await;
    }
    let machines = api.list("machines").await;
    assert_eq!(machines[0]["metadata"], json!({"zone": "b"}));
    assert_eq!(machines[0]["primaryIP"], "192.0.2.9");
    fleetd.stop().await;
    assert!(machine.is("a.service", "inactive"), "shutdown_mode counts");
}

//! What a unit may report while it is waited for.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::cluster::FIRST;
use crate::operations::ask;
use crate::program::{Ran, run};
use crate::stub::{Reply, Stub};

/// A server with one unit, `a.service`, whose reports are these, one after the other; the last one stays.
struct Reporting {
    stub: Stub,
}

impl Reporting {
    /// `current` is the unit's current state once it is launched, `reports` are active states; none is a 404.
    async fn of(current: &'static str, reports: &[Option<(&'static str, &'static str)>]) -> Self {
        let reports = reports.to_vec();
        let (launched, count) = (Arc::new(Mutex::new(false)), Arc::new(Mutex::new(0)));
        let answer = move |line: &str| {
            let mut launched = launched.lock().unwrap();
            match line {
                "PUT /units/a.service" => {
                    *launched = true;
                    Reply::empty(204)
                }
                "GET /units/a.service" => Reply::Json(
                    200,
                    unit(if *launched { current } else { "inactive" }, *launched),
                ),
                "GET /state/a.service" => {
                    let mut count = count.lock().unwrap();
                    let report = reports[(*count).min(reports.len() - 1)];
                    *count += 1;
                    report.map_or(
                        Reply::error(404, "unit state does not exist"),
                        |(active, sub)| Reply::Json(200, state(active, sub)),
                    )
                }
                "GET /machines" => {
                    let machine = json!({"id": FIRST, "primaryIP": "192.0.2.1"});
                    Reply::Json(200, json!({"machines": [machine]}))
                }
                "GET /units/a.service/explain" => {
                    let reason = "placed, and starting there";
                    let explanation =
                        json!({"name": "a.service", "desiredState": "launched", "reason": reason});
                    Reply::Json(200, explanation)
                }
                _ => Reply::error(404, ""),
            }
        };
        Self {
            stub: Stub::spawn(answer).await,
        }
    }

    async fn start(&self, flags: &[&str]) -> Ran {
        let endpoint = [("FLEETCTL_ENDPOINT", self.stub.base())];
        let endpoint = endpoint
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let arguments: Vec<&str> = ["start", "a"].iter().chain(flags).copied().collect();
        run(&endpoint, &arguments).await
    }
}

fn unit(current: &str, is_launched: bool) -> Value {
    json!({
        "name": "a.service",
        "desiredState": if is_launched { "launched" } else { "inactive" },
        "currentState": current,
        "machineID": FIRST,
        "options": [{"section": "Service", "name": "ExecStart", "value": "/bin/true"}],
    })
}

fn state(active: &str, sub: &str) -> Value {
    json!({
        "name": "a.service", "machineID": FIRST, "systemdLoadState": "loaded",
        "systemdActiveState": active, "systemdSubState": sub,
    })
}

const LAUNCHED: &str = "Unit a.service launched on 0f1e2d3c.../192.0.2.1\n";

#[tokio::test]
async fn a_slow_starter_is_waited_for() {
    let starting = Some(("activating", "start"));
    // No report yet, and then more than one attempt of 2 s.
    let mut reports = vec![None, None];
    reports.extend([starting; 10]);
    reports.push(Some(("active", "running")));
    let reporting = Reporting::of("launched", &reports).await;
    reporting.start(&[]).await.is(0, LAUNCHED, "");
}

#[tokio::test]
async fn attempts_limit_the_wait_for_systemd() {
    let reporting = Reporting::of("launched", &[Some(("activating", "start"))]).await;
    let waited = reporting.start(&["--block-attempts=1"]).await;
    waited.is(
        1,
        LAUNCHED,
        "Error waiting for systemd unit states, err: timed out waiting for unit a.service to become active: placed, and starting there\n",
    );
}

#[tokio::test]
async fn a_oneshot_that_has_finished_counts_as_started() {
    let reports = [Some(("activating", "start")), Some(("inactive", "dead"))];
    let reporting = Reporting::of("launched", &reports).await;
    reporting.start(&[]).await.is(0, LAUNCHED, "");
}

/// A unit whose start systemd has queued is reported as loaded.
#[tokio::test]
async fn a_unit_that_is_still_to_be_started_has_not_finished() {
    let reporting = Reporting::of("loaded", &[Some(("inactive", "dead"))]).await;
    let waited = reporting.start(&["--block-attempts=1"]).await;
    let errors = "Error waiting for units: timed out waiting for unit a.service to report state launched: placed, and starting there\n";
    assert_eq!((waited.status, waited.output.as_str()), (1, ""));
    assert!(waited.errors.starts_with(errors), "{waited:?}");
}

#[tokio::test]
async fn a_unit_that_fails_ends_the_wait_at_once() {
    let reports = [Some(("activating", "start")), Some(("failed", "failed"))];
    let reporting = Reporting::of("launched", &reports).await;
    // For ever, if the failure were not seen.
    let failed = reporting.start(&[]).await;
    failed.is(
        1,
        LAUNCHED,
        "Error waiting for systemd unit states, err: unit a.service has failed: systemd reports failed/failed; see fleetctl status a.service\n",
    );
}

#[tokio::test]
async fn a_failure_from_before_the_start_does_not_count() {
    let reports = [
        Some(("failed", "failed")),
        Some(("activating", "start")),
        Some(("active", "running")),
    ];
    let reporting = Reporting::of("launched", &reports).await;
    reporting.start(&[]).await.is(0, LAUNCHED, "");
}

/// A server whose only unit another client changes as soon as it was ordered about: then the unit is as it was before.
async fn with_another_client(before: &'static str) -> Stub {
    Stub::spawn(move |line| match line {
        "GET /units/a.service" => Reply::Json(
            200,
            json!({"name": "a.service", "desiredState": before, "currentState": before, "machineID": FIRST}),
        ),
        "DELETE /units/a.service" | "PUT /units/a.service" => Reply::empty(204),
        "GET /state?unitName=a.service" => Reply::Json(200, json!({})),
        _ => Reply::error(404, ""),
    })
    .await
}

#[tokio::test]
async fn a_wait_ends_when_another_client_gives_another_order() {
    let reordered = |state: &str| {
        format!(
            "Error waiting for units: another client has set the desired state of unit a.service to {state}; see fleetctl explain a.service\n"
        )
    };
    let created = "Error waiting for units: another client has created unit a.service again; see fleetctl cat a.service\n";
    let ended = "Error waiting for unit states, exit status: 1\n";
    for (command, before, errors) in [
        ("stop", "launched", reordered("launched") + ended),
        ("load", "inactive", reordered("inactive") + ended),
        ("unload", "loaded", reordered("loaded") + ended),
        ("restart", "loaded", reordered("loaded") + ended),
        ("destroy", "launched", created.to_owned()),
    ] {
        let stub = with_another_client(before).await;
        ask(&stub, &[command, "a"]).await.is(1, "", &errors);
    }
}

//! A real Prometheus scrapes real fleetd; every query of fleet's dashboard, and every alert on it, has a
//! result.

use std::collections::BTreeMap;

use hyperfleet_fleet::registry::{MachineRecord, Registered};
use hyperfleet_testkit::{
    NamedQuery, ScrapeJob, TestPrometheus, dashboard_queries, prometheus_program, until,
};

use super::program::{Fleetd, Place};

/// As outside of Kubernetes: there is no namespace.
const VARIABLES: &[(&str, &str)] = &[
    ("namespace", ".*"),
    ("job", "fleetd"),
    ("instance", ".*"),
    ("__rate_interval", "15s"),
];

/// The address of its TCP listener, which is on a free port.
async fn tcp_address(fleetd: &mut Fleetd) -> String {
    let find = |said: &str| {
        let mut addresses = said.split("tcp:127.0.0.1:").skip(1);
        addresses.find_map(|rest| {
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            (!port.is_empty() && port != "0").then(|| format!("127.0.0.1:{port}"))
        })
    };
    fleetd.until_found("it listens", find).await
}

/// fleetd as a machine with an agent, which finds no systemd here.
fn start(place: &Place, machine: &str, etcd: &str) -> Fleetd {
    let listen = format!("unix:{},tcp:127.0.0.1:0", place.socket(machine).display());
    let [units, state] = ["units", "state"].map(|name| {
        let folder = place.file(&format!("{machine}-{name}"));
        folder.display().to_string()
    });
    let settings = [
        ("listen", listen.as_str()),
        ("etcd_servers", etcd),
        ("engine_reconcile_interval", "0.5"),
        ("disable_agent", "false"),
        ("systemd_user", "true"),
        ("units_directory", &units),
        ("state_directory", &state),
    ];
    place.start_as(machine, &settings)
}

#[tokio::test]
async fn every_query_has_data_of_running_fleetds() {
    let Some(prometheus) = prometheus_program("prometheus") else {
        return;
    };
    let place = Place::new().await;
    let registry = place.registry().await;
    let machine = MachineRecord {
        address: String::new(),
        ip: "10.0.0.9".into(),
        metadata: BTreeMap::new(),
        version: "1".into(),
        halted: false,
        capacity: BTreeMap::new(),
    };
    let registered = registry.register_machine("far", &machine, 600).await;
    assert!(matches!(registered, Ok(Registered::As(_))));
    let mut first = start(&place, "m1", &place.etcd);
    // Without etcd requests are answered 503.
    let mut second = start(&place, "m2", "http://127.0.0.1:1");
    let instances = vec![
        tcp_address(&mut first).await,
        tcp_address(&mut second).await,
    ];
    first.until_serving().await;
    let job = ScrapeJob {
        name: "fleetd",
        instances,
        labels: "{}",
    };
    let prometheus = TestPrometheus::start(&prometheus, &[job]).await;
    first.launch("a.service").await;
    until("a unit is placed", async || {
        let seen = registry.snapshot().await.unwrap();
        seen.placements.contains_key("a.service")
    })
    .await;
    let refused = second.get("/fleet/v1/units").await.unwrap();
    assert_eq!(refused.0, 503);

    let mut queries = dashboard_queries("fleet.json", VARIABLES);
    assert!(queries.len() > 30, "{}", queries.len());
    let of_rules = prometheus.rule_queries(|group| group.starts_with("fleet"));
    queries.extend(of_rules.await);
    // The gauges of the leading engine are correct.
    for expression in [
        "max(fleet_engine_machines) == 1",
        "time() - max(fleet_engine_last_pass_timestamp_seconds) < 10",
    ] {
        queries.push(NamedQuery {
            name: "the engine".into(),
            expression: expression.into(),
        });
    }
    prometheus.assert_answered(&queries).await;
}

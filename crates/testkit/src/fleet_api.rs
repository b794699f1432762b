use std::any::Any;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpServer;
use actix_web::rt::net::TcpStream;
use hyperfleet_fleet::api::{FleetApi, Hosts, fleet_app};
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::inspect::Inspector;
use hyperfleet_fleet::registry::{
    Acquired, Leader, Leading, MachineRecord, Prefix, Registered, Registry, Reports, StateFilter,
    Step, UnitState, Written,
};
use hyperfleet_fleet::{EtcdFleet, Fleet};
use hyperfleet_server_kit::http::{Admission, Connection, Gate, Limits, Redaction};
use rustix::net::sockopt::set_socket_send_buffer_size;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    Answer, PATIENCE, RawAnswer, TestClock, Then, fresh_prefix, http_client, send_raw_to,
    shared_etcd, until,
};

/// Fleet's API as fleetd serves it, on a free port, with its own prefix in etcd. There is no engine and no
/// agent: tests act in their place.
pub struct TestFleet {
    /// `http://127.0.0.1:<port>`; it also listens on a unix socket.
    pub base: String,
    pub client: reqwest::Client,
    pub registry: Registry<EtcdKeys>,
    pub fleet: EtcdFleet,
    pub gate: Gate,
    /// One reference for each connection, one of ours, and one of the server's.
    connections: Arc<()>,
    leading: tokio::sync::OnceCell<Leading>,
    /// Folder of the unix socket.
    folder: tempfile::TempDir,
}

impl TestFleet {
    /// With pages of a hundred.
    pub async fn spawn() -> Self {
        Self::spawn_with(|_| {}).await
    }

    /// With adjusted settings.
    pub async fn spawn_with(adjust: impl FnOnce(&mut FleetApi)) -> Self {
        let test = Self::unconnected(shared_etcd().await, 100, adjust);
        test.connect().await;
        test
    }

    /// With this idle time of connections.
    pub async fn spawn_with_idle_time(idle_time: Duration) -> Self {
        let test = Self::prepared(shared_etcd().await, 100, idle_time, |_| {});
        test.connect().await;
        test
    }

    /// On a store, without a kept mirror.
    pub fn unconnected(
        store: EtcdKeys,
        page_size: usize,
        adjust: impl FnOnce(&mut FleetApi),
    ) -> Self {
        Self::prepared(store, page_size, IDLE_TIME, adjust)
    }

    fn prepared(
        store: EtcdKeys,
        page_size: usize,
        idle_time: Duration,
        adjust: impl FnOnce(&mut FleetApi),
    ) -> Self {
        let registry = Registry::new(store, Prefix::new(&fresh_prefix()).unwrap());
        let fleet = Fleet::new(registry.clone(), page_size);
        let gate = Gate::serving();
        let mut api = FleetApi {
            fleet: fleet.clone(),
            clock: TestClock::at("2026-01-01T10:00:00Z").clock(),
            version: "1.2.3",
            admission: Admission::new(gate.clone(), &Limits::default()),
            redaction: Redaction::default(),
            scrape: Arc::new(|| "a_metric 1\n".to_owned()),
            hosts: Hosts::Any,
            inspector: Inspector::nowhere(),
        };
        adjust(&mut api);
        let connections = Arc::new(());
        let folder = tempfile::tempdir().unwrap();
        Self {
            base: serve(&api, &connections, &folder.path().join(SOCKET), idle_time),
            connections,
            client: http_client(),
            registry,
            fleet,
            gate,
            leading: tokio::sync::OnceCell::new(),
            folder,
        }
    }

    /// Keeps the mirror, and waits until it is connected.
    pub async fn connect(&self) {
        tokio::spawn(self.fleet.clone().run_mirror());
        until("fleet is connected", async || self.fleet.is_connected()).await;
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    pub fn open_connections(&self) -> usize {
        Arc::strong_count(&self.connections) - 2
    }

    pub fn address(&self) -> &str {
        self.base.strip_prefix("http://").unwrap()
    }

    /// Sends a request unchanged, and follows no redirect.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let url = format!("{}{path}", self.base);
        let mut request = self.client.request(method.parse().unwrap(), url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer =
            async { Answer::of(request.body(body.to_owned()).send().await.unwrap()).await };
        timeout(PATIENCE, answer)
            .await
            .expect("a whole answer in time")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.send("PUT", path, &headers, &body.to_string()).await
    }

    /// Sends a head with an unencoded path.
    pub async fn raw(&self, method: &str, path: &str) -> RawAnswer {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = send_raw_to(self.address(), head.as_bytes(), Then::Wait).await;
        answer.expect("an answer")
    }

    /// Registers a machine, with its reports.
    pub async fn machine(&self, id: &str) -> Reports {
        let machine = MachineRecord {
            address: String::new(),
            ip: "192.0.2.7".to_owned(),
            metadata: BTreeMap::from([("zone".to_owned(), "east".to_owned())]),
            version: "1".to_owned(),
            halted: false,
            capacity: BTreeMap::new(),
        };
        let registered = self.registry.register_machine(id, &machine, 600).await;
        let Registered::As(registration) = registered.unwrap() else {
            panic!("{id} is taken");
        };
        // Lists come from the mirror, which sees writes of others a little later.
        until("the machine is listed", async || {
            let mut token = None;
            loop {
                let Ok(page) = self.fleet.list_machines(token.as_deref()).await else {
                    return false;
                };
                token = page.token();
                if page.items.iter().any(|machine| machine.id == id) {
                    return true;
                }
                if token.is_none() {
                    return false;
                }
            }
        })
        .await;
        Reports::new(registration)
    }

    /// The test's only machine reports that these units run.
    pub async fn report(&self, reports: &mut Reports, units: &[&str]) {
        let state = |unit: &&str| {
            let state = UnitState {
                load: "loaded".to_owned(),
                active: "active".to_owned(),
                sub: "running".to_owned(),
                hash: "0123456789012345678901234567890123456789".to_owned(),
                launched: true,
                restarts: None,
                error: String::new(),
                result: String::new(),
            };
            ((*unit).to_owned(), state)
        };
        let states = units.iter().map(state).collect();
        reports.publish(&self.registry, &states).await.unwrap();
        for unit in units {
            let filter = StateFilter {
                unit: Some((*unit).to_owned()),
                ..StateFilter::default()
            };
            until("the state is listed", async || {
                let listed = self.fleet.list_states(&filter, None).await;
                listed.is_ok_and(|page| !page.items.is_empty())
            })
            .await;
        }
    }

    /// Places a unit as an engine would.
    pub async fn place(&self, unit: &str, machine: &str) {
        let found = self.registry.find_unit(unit).await.unwrap().unwrap();
        self.carry_out(crate::place(&found, machine)).await;
    }

    async fn carry_out(&self, step: Step) {
        let leading = self.leading.get_or_init(async || {
            let leader = Leader {
                id: "engine".to_owned(),
                version: 1,
            };
            match self.registry.acquire_leadership(&leader, 600).await {
                Ok(Acquired::Leading(leading)) => leading,
                other => panic!("{other:?}"),
            }
        });
        let leading = leading.await;
        let carried = self.registry.carry_out(leading, &[step]).await.unwrap();
        assert!(matches!(carried[..], [Written::At(_)]), "{carried:?}");
    }
}

/// Idle time of connections in these tests.
pub const IDLE_TIME: Duration = Duration::from_secs(2);

/// The kernel's send buffer, as of the real server.
const SEND_BYTES: usize = 64 * 1024;

const SOCKET: &str = "fleet.sock";

fn serve(api: &FleetApi, connections: &Arc<()>, socket: &Path, idle_time: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_socket_send_buffer_size(&listener, SEND_BYTES).unwrap();
    listener.set_nonblocking(true).unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let memory = api.admission.budget().clone();
    let (api, connections) = (api.clone(), connections.clone());
    let server = HttpServer::new(move || fleet_app(api.clone()))
        .workers(1)
        .h1_allow_half_closed(false)
        .disable_signals()
        .on_connect(move |io: &dyn Any, data| {
            let stream = io.downcast_ref::<TcpStream>();
            let socket = stream.and_then(|stream| stream.as_fd().try_clone_to_owned().ok());
            Connection::open(data, socket, idle_time, Some(&memory), connections.clone());
        });
    let server = server.listen(listener).unwrap().bind_uds(socket);
    tokio::spawn(server.unwrap().run());
    base
}

//! Checks the settings together before anything starts.

use std::path::Path;

use anyhow::{anyhow, bail};
use rustls::ServerConfig;

use super::listen::{self, Doors};
use crate::settings::{Loaded, Settings, machine_id};
use hyperfleet_fleet::start::etcd;
use hyperfleet_fleet::start::{self, RegistryLocation};
use hyperfleet_server_kit::errors::ErrorList;
use hyperfleet_server_kit::files;
use hyperfleet_server_kit::tls;

/// File with the machine's id (`machine-id(5)`).
const MACHINE_ID: &str = "/etc/machine-id";
const MACHINE_ID_BYTES_MAX: u64 = 4096;

/// Write permission for others; on a socket, the right to connect.
const OTHERS_WRITE: u32 = 0o002;

/// fleetd's names of the etcd settings.
const ETCD: etcd::SettingNames = etcd::SettingNames {
    endpoints: "etcd_servers",
    username: "etcd_username",
    password: "etcd_password",
    ca_file: "etcd_cafile",
    cert_file: "etcd_certfile",
    key_file: "etcd_keyfile",
};

/// The parts that fleetd will start.
pub(super) struct Plan {
    /// Where the registry is stored.
    pub(super) registry: RegistryLocation,
    pub(super) machine_id: String,
    /// TLS of TCP listeners with its watched files, if configured.
    pub(super) tls: Option<(ServerConfig, tls::Watched)>,
    /// Warnings.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// Reads only the files that the settings name.
    ///
    /// # Errors
    /// Every fault with its setting and the source of it.
    pub(super) fn of(loaded: &Loaded, doors: &Doors) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let mut faults = ErrorList::default();
        let etcd = faults.part(etcd::settings(
            &settings.etcd,
            &settings.etcd_password,
            &ETCD,
        ));
        let prefix = start::registry_prefix("etcd_key_prefix", &settings.etcd.key_prefix);
        let prefix = faults.part(prefix);
        let machine_id = faults.part(own_machine_id(settings));
        let tls = faults.part(tls(settings));
        faults.part(without_api(settings, doors));
        if !settings.listen.is_disabled {
            faults.part(guarded(settings, doors));
            faults.part(reachable_by_peers(settings));
        }
        loaded.refuse(faults.0)?;
        let (Some(etcd), Some(prefix), Some(machine_id), Some(tls)) =
            (etcd, prefix, machine_id, tls)
        else {
            unreachable!("what was not had has a fault");
        };
        Ok(Self {
            notes: notes(settings, doors, &etcd),
            registry: RegistryLocation {
                etcd,
                prefix,
                page_size: settings.page_size,
            },
            machine_id,
            tls,
        })
    }
}

/// The machine's id, from the settings or from systemd.
fn own_machine_id(settings: &Settings) -> anyhow::Result<String> {
    if !settings.machine_id.is_empty() {
        return Ok(settings.machine_id.clone());
    }
    let advice = "set machine_id, or run systemd-machine-id-setup";
    let text = files::read_text(Path::new(MACHINE_ID), MACHINE_ID_BYTES_MAX).map_err(|error| {
        anyhow!("unable to determine local machine ID: cannot read {MACHINE_ID}: {error}; {advice}")
    })?;
    machine_id(text.trim()).map_err(|fault| {
        anyhow!("unable to determine local machine ID: {MACHINE_ID} {fault}; {advice}")
    })
}

fn tls(settings: &Settings) -> anyhow::Result<Option<(ServerConfig, tls::Watched)>> {
    let listen = &settings.listen;
    if listen.cert_file.as_os_str().is_empty() {
        return Ok(None);
    }
    let has_clients = !listen.client_ca_file.as_os_str().is_empty();
    tls::serve(&tls::Files {
        listener: "api",
        pair: "listen_cert_file",
        cert: ("listen_cert_file", &listen.cert_file),
        key: ("listen_key_file", &listen.key_file),
        client_ca: has_clients.then_some(("listen_client_ca_file", &listen.client_ca_file)),
    })
    .map(Some)
}

/// Refuses listeners for other machines unless clients are authenticated or the settings allow anonymous ones:
/// a client of the API can run anything as root on every machine of the fleet.
fn guarded(settings: &Settings, doors: &Doors) -> anyhow::Result<()> {
    let listen = &settings.listen;
    if listen.is_anonymous || !listen.client_ca_file.as_os_str().is_empty() {
        return Ok(());
    }
    match doors.reachable(listen) {
        None => Ok(()),
        Some(address) => bail!(
            "listen: other machines may reach {address}, and callers are not authenticated: set listen_cert_file, \
             listen_key_file and listen_client_ca_file, or set listen_anonymous = true"
        ),
    }
}

/// Refuses to advertise an address at which other machines cannot authenticate.
fn reachable_by_peers(settings: &Settings) -> anyhow::Result<()> {
    if settings.agent.advertise_address.is_empty() || settings.listen.peer_files().is_some() {
        return Ok(());
    }
    bail!(
        "advertise_address: other machines prove who they are only by their certificates: set listen_cert_file, \
         listen_key_file and listen_client_ca_file"
    )
}

/// Refuses settings that need the API if it is disabled.
fn without_api(settings: &Settings, doors: &Doors) -> anyhow::Result<()> {
    if !settings.listen.is_disabled {
        return Ok(());
    }
    if settings.engine.is_disabled && settings.agent.is_disabled {
        bail!(
            "disable_api: disable_engine and disable_agent are also set, so fleetd would do nothing: unset one of the three"
        )
    }
    if doors.are_handed_over() {
        // Nothing would accept their clients, which would wait forever.
        bail!(
            "disable_api: systemd passes sockets to fleetd: remove Requires=fleetd.socket from fleetd.service \
             (systemctl edit --full fleetd.service), and run systemctl disable --now fleetd.socket"
        )
    }
    if !settings.agent.advertise_address.is_empty() {
        bail!("advertise_address: with disable_api no other machine reaches this one: unset it")
    }
    Ok(())
}

fn notes(
    settings: &Settings,
    doors: &Doors,
    etcd: &hyperfleet_fleet::etcd::Settings,
) -> Vec<String> {
    let listen = &settings.listen;
    let mut notes = Vec::new();
    if listen.is_anonymous
        && let Some(address) = doors.reachable(listen)
    {
        notes.push(format!(
            "listen_anonymous: any client that reaches {address} can run anything on every machine of the fleet"
        ));
    }
    if listen.socket_mode & OTHERS_WRITE != 0 {
        notes.push(format!(
            "listen_socket_mode: with {:04o} every user of this machine can run anything on every machine of the fleet",
            listen.socket_mode
        ));
    }
    if etcd.tls.is_none() && !etcd.endpoints.iter().all(|url| is_of_this_machine(url)) {
        notes.push("etcd_servers: http to other machines is unprotected; use https".to_owned());
    }
    notes
}

fn is_of_this_machine(url: &str) -> bool {
    let url: Option<reqwest::Url> = url.parse().ok();
    let host = url.as_ref().and_then(|url| url.host_str());
    host.is_some_and(|host| listen::is_of_this_machine(host.trim_matches(['[', ']'])))
}

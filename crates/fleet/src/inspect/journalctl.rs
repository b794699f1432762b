//! Options of `journalctl` that single answers and followed journals share.

use std::io;

use crate::agent::Bus;

pub(super) const JOURNALCTL: &str = "journalctl";
const MACHINE_ID: &str = "/etc/machine-id";

/// The options of `journalctl` for new entries of this machine.
///
/// By itself `--follow` prints entries of the current boot only. In a container fleetd may see another boot id than
/// journald, and would see no entry. `--merge` prints those of all boots, and those of other machines as well.
///
/// # Errors
/// The id of this machine could not be read.
pub(super) fn follow_options() -> io::Result<[String; 3]> {
    let id = std::fs::read_to_string(MACHINE_ID);
    let id = id.map_err(|error| io::Error::other(format!("read {MACHINE_ID}: {error}")))?;
    let this_machine = format!("_MACHINE_ID={}", id.trim());
    Ok(["--follow".to_owned(), "--merge".to_owned(), this_machine])
}

/// The option of `journalctl` that selects a unit.
pub(super) fn journal_of(bus: Bus, unit: &str) -> String {
    match bus {
        Bus::User => format!("--user-unit={unit}"),
        Bus::System => format!("--unit={unit}"),
    }
}

//! Status and journal of a unit, as printed on its machine.
//!
//! ```text
//! request ─▶ which machine? ─┬─ this one ─▶ local: systemctl status, journalctl
//!                            └─ another  ─▶ peer:  the same request to its fleetd, over mutual TLS
//! ```
//!
//! A journal is a stream of events, which a client can resume (`events`).
//!
//! Only fleet's own units can be inspected, on machines that run them.

mod events;
mod journal;
mod journalctl;
mod local;
mod peer;
mod position;
mod shortened;
mod text;

use std::fmt;

use crate::agent::Bus;
use crate::{Error as FleetError, EtcdFleet};

pub(crate) use peer::EXIT_STATUS;
pub use peer::PeerFiles;
pub use position::JournalPosition;
pub use text::TextStream;

pub const LINES_MAX: u32 = 10_000;

/// What to show of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// The output of `systemctl status`.
    Status,
    /// The unit's journal, as server-sent events.
    Journal {
        /// Number of newest entries.
        lines: u32,
        /// Whether it continues with new entries.
        follows: bool,
        /// Resumes an earlier stream that followed; the number of lines is ignored then.
        after: Option<JournalPosition>,
    },
}

impl Inspection {
    /// Memory of a response while its client reads, in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        match self {
            // The text, and its serialized copy.
            Self::Status => 2 * local::STATUS_BYTES_MAX,
            Self::Journal { .. } => events::BYTES_MAX,
        }
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "status",
            Self::Journal { .. } => "journal",
        })
    }
}

#[derive(Debug)]
pub struct Inspected {
    /// Exit status of the program, if it has ended.
    pub exit_status: Option<i32>,
    pub text: TextStream,
}

/// Why there is no response, by what the caller can do. The text is for clients.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error("unit {unit} is on no machine")]
    OnNoMachine { unit: String },
    #[error("unit {unit} is not on machine {machine}")]
    NotOnMachine { unit: String, machine: String },
    #[error("unit {unit} runs on several machines: name one with machineID")]
    OnSeveralMachines { unit: String },
    #[error(
        "machine {machine} does not say where other machines reach its fleetd: set advertise_address there"
    )]
    NoAddress { machine: String },
    #[error(
        "this fleetd cannot ask other machines: set listen_cert_file, listen_key_file and listen_client_ca_file"
    )]
    NoCertificate,
    #[error("this server runs on no machine of fleet, and asks none: use the API of a fleetd")]
    NoMachine,
    #[error(
        "the request was for machine {asked}, and came to {here}: check advertise_address of {asked}"
    )]
    WrongMachine { asked: String, here: String },
    #[error("cannot ask machine {machine} at {address}: {message}")]
    Unreachable {
        machine: String,
        address: String,
        message: String,
    },
    /// The other machine's refusal.
    #[error("{message}")]
    Refused { status: u16, message: String },
    #[error(
        "cannot go on with the journal after {position}: {message}; leave out `after` to start over"
    )]
    UnusablePosition {
        position: JournalPosition,
        message: String,
    },
    #[error("cannot run {program} on machine {machine}: {message}")]
    NotRun {
        program: &'static str,
        machine: String,
        message: String,
    },
    /// The cause is for the log only.
    #[error("{program} failed on machine {machine}")]
    Failed {
        program: &'static str,
        machine: String,
        cause: String,
    },
}

/// Inspects units of this machine and, through their fleetd, of others.
#[derive(Debug, Clone)]
pub struct Inspector {
    own: Option<Own>,
}

#[derive(Debug, Clone)]
struct Own {
    machine: String,
    bus: Bus,
    /// Certificates for other machines; `None` without TLS.
    files: Option<PeerFiles>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    pub unit: &'a str,
    /// The machine to ask, for a unit that runs on several.
    pub machine: Option<&'a str>,
    pub inspection: Inspection,
    /// Whether another fleetd forwarded it: it is not forwarded again.
    pub is_forwarded: bool,
}

impl Inspector {
    /// Answers for this machine, and asks others with these certificates.
    pub fn of_machine(machine: &str, bus: Bus, files: Option<PeerFiles>) -> Self {
        let machine = machine.to_owned();
        Self {
            own: Some(Own {
                machine,
                bus,
                files,
            }),
        }
    }

    /// Refuses every request, for servers other than fleetd.
    pub fn nowhere() -> Self {
        Self { own: None }
    }

    /// Asks the machine that runs a unit.
    ///
    /// # Errors
    /// [`Error`], by what the caller can do.
    pub async fn inspect(
        &self,
        fleet: &EtcdFleet,
        request: &Request<'_>,
    ) -> Result<Inspected, Error> {
        let own = self.own.as_ref().ok_or(Error::NoMachine)?;
        let machine = machine_of(fleet, request).await?;
        if machine == own.machine {
            return local::inspect(own, request).await;
        }
        if request.is_forwarded {
            return Err(Error::WrongMachine {
                asked: machine,
                here: own.machine.clone(),
            });
        }
        let address = fleet.address_of(&machine).await?;
        let address = address.ok_or_else(|| Error::NoAddress {
            machine: machine.clone(),
        })?;
        let files = own.files.as_ref().ok_or(Error::NoCertificate)?;
        peer::inspect(files, &machine, &address, request).await
    }
}

/// The machine to ask: where the unit is placed, or one of those that report it.
async fn machine_of(fleet: &EtcdFleet, request: &Request<'_>) -> Result<String, Error> {
    let unit = request.unit.to_owned();
    let stored = fleet.stored_unit(request.unit).await?;
    let on: Vec<String> = if stored.body.value.global.is_some() {
        fleet.machines_reporting(request.unit)
    } else {
        let placement = stored.placement.into_iter();
        placement.map(|placement| placement.value.machine).collect()
    };
    match (request.machine, on.as_slice()) {
        (_, []) => Err(Error::OnNoMachine { unit }),
        (Some(machine), on) if on.iter().any(|other| other == machine) => Ok(machine.to_owned()),
        (Some(machine), _) => Err(Error::NotOnMachine {
            unit,
            machine: machine.to_owned(),
        }),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Error::OnSeveralMachines { unit }),
    }
}

impl EtcdFleet {
    /// Machines that report a unit, by id.
    fn machines_reporting(&self, unit: &str) -> Vec<String> {
        self.mirror.read(|picture| {
            let states = picture.snapshot.states_of(unit);
            states.map(|(key, _)| key.machine.clone()).collect()
        })
    }

    /// Where other machines reach a machine's fleetd, if it publishes an address.
    async fn address_of(&self, machine: &str) -> Result<Option<String>, FleetError> {
        let known = self.registry.find_machine(machine).await?;
        let address = known.map(|known| known.machine.value.address);
        Ok(address.filter(|address| !address.is_empty()))
    }
}

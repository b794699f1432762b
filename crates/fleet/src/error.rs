use crate::registry::{Key, LabelKey, RunKey, StateKey};
use crate::{keys, registry};

/// Why a use case was refused or failed, by what its caller can do. Independent of HTTP. Texts that clients may
/// see are written for them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The current state does not allow the request, or the request lacks something in this state.
    #[error("{0}")]
    Conflict(String),
    #[error("unit does not exist")]
    NoUnit,
    #[error("machine does not exist")]
    NoMachine,
    #[error("unit state does not exist")]
    NoState,
    /// The token or revision is not from a list or watch of this fleet.
    #[error("invalid value of nextPageToken query parameter")]
    Token,
    /// The list or watch is older than the history that is kept: start over.
    #[error("the history was compacted meanwhile: start over without a token or revision")]
    Stale,
    /// The record was written by a newer version of fleet, or is damaged, and is not changed. The text says
    /// which, and names the key in etcd.
    #[error("{0}")]
    Unreadable(String),
    /// Others were faster too often. A retry may succeed.
    #[error("too many changes at the same time: try again")]
    Busy,
    /// etcd is unreachable or cannot serve, or the mirror is not connected. A retry may succeed.
    #[error("fleet server unable to communicate with etcd")]
    Unavailable(#[source] Option<registry::Error>),
    /// Anything else. Clients see no details.
    #[error("the registry failed")]
    Failed(#[source] registry::Error),
}

impl From<registry::Error> for Error {
    fn from(error: registry::Error) -> Self {
        use registry::Error as Source;
        match error {
            Source::Compacted => Self::Stale,
            Source::Token => Self::Token,
            Source::Busy => Self::Busy,
            Source::Unreadable { key, name, version } => {
                Self::Unreadable(describe_unreadable(&key, &name, version))
            }
            Source::Unusable { .. } => Self::Invalid(error.to_string()),
            Source::Store(keys::Error::Unavailable { .. }) => Self::Unavailable(Some(error)),
            Source::Deposed | Source::Unregistered | Source::WentBack { .. } | Source::Store(_) => {
                Self::Failed(error)
            }
        }
    }
}

impl Error {
    /// Whether the error is an unusable name. Nothing has such a name.
    pub(super) fn is_unusable_name(error: &registry::Error) -> bool {
        matches!(error, registry::Error::Unusable { .. })
    }
}

/// Describes an unreadable key, with its remedy.
fn describe_unreadable(key: &Key, name: &str, version: Option<u64>) -> String {
    let what = named(key);
    if registry::is_newer(version) {
        return format!(
            "{what} was written by a newer version of fleet and is not changed: etcd key {name:?}"
        );
    }
    let mend = match key {
        Key::Unit(_) | Key::Desired(_) | Key::Placement(_) | Key::Global(_) => {
            "destroy the unit and create it again"
        }
        _ => "delete that key in etcd",
    };
    format!("{what} is damaged: etcd key {name:?} is missing or cannot be read: {mend}")
}

/// What a key is about, for people.
fn named(key: &Key) -> String {
    match key {
        Key::Unit(unit)
        | Key::Desired(unit)
        | Key::Placement(unit)
        | Key::Global(unit)
        | Key::Move(unit)
        | Key::Run(RunKey { unit, .. }) => format!("unit {unit}"),
        Key::State(StateKey { unit, machine }) => {
            format!("the state of unit {unit} on machine {machine}")
        }
        Key::Machine(id) => format!("machine {id}"),
        Key::Label(LabelKey { machine, key }) => format!("metadata {key} of machine {machine}"),
        Key::Cordon(id) => format!("the cordon of machine {id}"),
        Key::Drain(id) => format!("the drain of machine {id}"),
        Key::LastReport(id) => format!("the last report of machine {id}"),
        Key::Leader | Key::EngineVersion => "the engine's record".to_owned(),
        Key::ReplacesOrder => "the order of units with Replaces".to_owned(),
        Key::Resume => "the order to resume".to_owned(),
    }
}

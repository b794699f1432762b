use crate::registry::{Key, LabelKey, RunKey, StateKey};
use crate::{keys, registry};

/// Why a use case was refused or failed, by what its caller can do. Knows nothing of HTTP. Where a client may be told,
/// the text is for it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was sent cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// What is there does not allow it, or does not suffice for it.
    #[error("{0}")]
    Conflict(String),
    /// There is no such unit.
    #[error("unit does not exist")]
    NoUnit,
    /// There is no such machine.
    #[error("machine does not exist")]
    NoMachine,
    /// No machine reports the unit.
    #[error("unit state does not exist")]
    NoState,
    /// The token, or the revision to go on from, is none that a list or a watch of this fleet gave.
    #[error("invalid value of nextPageToken query parameter")]
    Token,
    /// What was to be gone on with is older than the history that is kept: begin again.
    #[error("the history was compacted meanwhile: start over without a token or revision")]
    Stale,
    /// It was written by a newer version of fleet, or is damaged, and is left alone. The text says which, and names
    /// the key in etcd.
    #[error("{0}")]
    Foreign(String),
    /// Others were faster too often. The same may succeed later.
    #[error("too many changes at the same time: try again")]
    Busy,
    /// etcd cannot be reached or cannot serve, or nobody has listed it yet. The same may succeed later.
    #[error("fleet server unable to communicate with etcd")]
    Unavailable(#[source] Option<registry::Error>),
    /// Anything else; nothing for clients.
    #[error("the registry failed")]
    Failed(#[source] registry::Error),
}

impl From<registry::Error> for Error {
    fn from(error: registry::Error) -> Self {
        use registry::Error as Source;
        match error {
            Source::Compacted => Self::Stale,
            Source::Token => Self::Token,
            Source::Foreign { key, name, version } => Self::Foreign(foreign(&key, &name, version)),
            Source::Unusable { .. } => Self::Invalid(error.to_string()),
            Source::Store(keys::Error::Unavailable { .. }) => Self::Unavailable(Some(error)),
            Source::Deposed | Source::Unregistered | Source::WentBack { .. } | Source::Store(_) => {
                Self::Failed(error)
            }
        }
    }
}

impl Error {
    /// Whether a name was asked for that nothing can be called by: there is no such thing, then.
    pub(super) fn is_unusable_name(error: &registry::Error) -> bool {
        matches!(error, registry::Error::Unusable { .. })
    }
}

/// What is to be said of a key that is not ours to read, and what helps.
fn foreign(key: &Key, name: &str, version: Option<u64>) -> String {
    let what = named(key);
    if registry::is_newer(version) {
        return format!(
            "{what} was written by a newer version of fleet and is left alone: etcd key {name:?}"
        );
    }
    let mend = match key {
        Key::Unit(_) | Key::Want(_) | Key::Place(_) | Key::Global(_) => {
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
        | Key::Want(unit)
        | Key::Place(unit)
        | Key::Global(unit)
        | Key::Why(unit)
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
        Key::Leader | Key::EngineVersion => "what the engine keeps".to_owned(),
        Key::ReplacesOrder => "the order of units with Replaces".to_owned(),
        Key::Resume => "the word to resume".to_owned(),
    }
}

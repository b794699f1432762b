//! Signals of systemd over D-Bus: which units have changed, and what became of starts.
//!
//! They are read beside all else, because zbus gives no answer while signals wait to be taken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use zbus::message::Type;
use zbus::{Connection, MatchRule, Message, MessageStream, ObjectPath, OwnedObjectPath};

use super::systemd::{Error, SystemdSignal};

const SERVICE: &str = "org.freedesktop.systemd1";
const UNITS: &str = "/org/freedesktop/systemd1/unit/";
const UNIT_INTERFACE: &str = "org.freedesktop.systemd1.Unit";
const MANAGER_INTERFACE: &str = "org.freedesktop.systemd1.Manager";
/// The result of a job that was given up because one that it required has failed.
const GIVEN_UP: &str = "dependency";
/// How many signals may wait to be read; they are read at once.
const SIGNALS_MAX: NonZeroUsize = NonZeroUsize::new(8192).expect("more than none");

/// The signals of one connection.
#[derive(Debug)]
pub(super) struct Signals {
    shared: Arc<Shared>,
    /// Ends with this.
    reader: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    news: Notify,
}

/// What was signalled and was not taken yet.
#[derive(Debug, Default)]
struct State {
    /// Units whose state has changed.
    changed: BTreeSet<String>,
    /// Jobs of any units that have ended, oldest first.
    ended: VecDeque<EndedJob>,
    /// Units of the starts and restarts that the agent has begun, by the path of their job.
    begun: BTreeMap<String, String>,
    /// Whether no more will come.
    has_ended: bool,
}

#[derive(Debug)]
struct EndedJob {
    path: String,
    was_given_up: bool,
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Signals {
    /// Listens from now on.
    pub(super) async fn listen(connection: &Connection) -> zbus::Result<Self> {
        let rule = || MatchRule::builder().msg_type(Type::Signal).sender(SERVICE);
        let changed = rule()
            .interface("org.freedesktop.DBus.Properties")
            .member("PropertiesChanged")
            .path_namespace(UNITS.trim_end_matches('/'))
            .arg(0, UNIT_INTERFACE)
            .build()?;
        let ended = rule()
            .interface(MANAGER_INTERFACE)
            .member("JobRemoved")
            .build()?;
        let signals = stream::select(
            MessageStream::for_match_rule(changed, connection, Some(SIGNALS_MAX)).await?,
            MessageStream::for_match_rule(ended, connection, Some(SIGNALS_MAX)).await?,
        );
        let shared = Arc::<Shared>::default();
        let reader = tokio::spawn(read(signals, Arc::clone(&shared)));
        Ok(Self {
            shared,
            reader: reader.abort_handle(),
        })
    }

    /// The agent has begun to start a unit, by this job.
    pub(super) fn begun(&self, unit: &str, job: &OwnedObjectPath) {
        let job = job.to_string();
        self.shared.state().begun.insert(job, unit.to_owned());
    }

    /// Waits for the next one. May be given up half-way.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: the connection has ended.
    pub(super) async fn next(&self) -> Result<SystemdSignal, Error> {
        loop {
            if let Some(signal) = self.shared.state().take() {
                return Ok(signal);
            }
            if self.shared.state().has_ended {
                return Err(Error::Unreachable {
                    doing: "read signals",
                    message: "the connection has ended".to_owned(),
                });
            }
            self.shared.news.notified().await;
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes a signal, if it is of any use.
    fn note(&mut self, message: &Message) -> Option<()> {
        let header = message.header();
        if let Some(label) = header.path()?.strip_prefix(UNITS) {
            self.changed.insert(unescaped(label)?);
            return Some(());
        }
        let body = message.body();
        let (_, path, _, result): (u32, ObjectPath<'_>, &str, &str) = body.deserialize().ok()?;
        self.ended.push_back(EndedJob {
            path: path.to_string(),
            was_given_up: result == GIVEN_UP,
        });
        Some(())
    }

    /// The next one. A job may end before the call that has begun it is answered; only here it is known whose it was.
    fn take(&mut self) -> Option<SystemdSignal> {
        while let Some(job) = self.ended.pop_front() {
            if let Some(unit) = self.begun.remove(&job.path) {
                return Some(if job.was_given_up {
                    SystemdSignal::GaveUp { unit }
                } else {
                    SystemdSignal::Started { unit }
                });
            }
        }
        let unit = self.changed.pop_first()?;
        Some(SystemdSignal::Changed { unit })
    }
}

async fn read(mut signals: impl Stream<Item = zbus::Result<Message>> + Unpin, shared: Arc<Shared>) {
    while let Some(Ok(message)) = signals.next().await {
        let is_noted = shared.state().note(&message).is_some();
        if is_noted {
            shared.news.notify_one();
        }
    }
    shared.state().has_ended = true;
    shared.news.notify_one();
}

/// A unit's name out of its object path, where other characters than letters and digits are `_` and two hex digits.
fn unescaped(label: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(label.len());
    let mut rest = label.as_bytes();
    while let [first, behind @ ..] = rest {
        if *first == b'_' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_object_paths() {
        for (label, name) in [
            ("web_40_31_2eservice", Some("web@1.service")),
            ("a_2dB9_2eservice", Some("a-B9.service")),
            ("a_2", None),
            ("a_zz", None),
        ] {
            assert_eq!(unescaped(label).as_deref(), name, "{label}");
        }
    }
}

//! Signals of systemd over D-Bus: changed units, and the results of starts.
//!
//! A separate task reads them, because zbus delivers no reply to a call while unread signals fill its queue.

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
/// Results of jobs that are no failure. `skipped`: the unit's state made the job unnecessary. `canceled`: an operator has
/// stopped the unit while it started. A start that a `Condition…=` prevents is `done`.
const SUCCEEDED: [&str; 3] = ["done", "skipped", "canceled"];
/// How many signals zbus may queue. They are read immediately.
const SIGNALS_MAX: NonZeroUsize = NonZeroUsize::new(8192).expect("more than none");

#[derive(Debug)]
pub(super) struct Signals {
    shared: Arc<Shared>,
    /// Stops the reader.
    reader: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    news: Notify,
}

/// Signals that were not taken yet.
#[derive(Debug, Default)]
struct State {
    changed: BTreeSet<String>,
    /// Finished jobs of any units, oldest first.
    ended: VecDeque<EndedJob>,
    /// Units whose start or restart the agent requested, by the path of their job.
    begun: BTreeMap<String, String>,
    /// Whether the connection has ended.
    has_ended: bool,
}

#[derive(Debug)]
struct EndedJob {
    path: String,
    result: String,
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Signals {
    /// Subscribes to the signals of a connection.
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

    /// Records that the agent requested the start of a unit by this job.
    pub(super) fn begun(&self, unit: &str, job: &OwnedObjectPath) {
        let job = job.to_string();
        self.shared.state().begun.insert(job, unit.to_owned());
    }

    /// Waits for the next signal. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: the connection has ended.
    pub(super) async fn next(&self) -> Result<SystemdSignal, Error> {
        loop {
            if let Some(signal) = self.shared.state().next() {
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
    /// Records a signal if it is relevant.
    fn record(&mut self, message: &Message) -> Option<()> {
        let header = message.header();
        if let Some(label) = header.path()?.strip_prefix(UNITS) {
            self.changed.insert(unescaped(label)?);
            return Some(());
        }
        let body = message.body();
        let (_, path, _, result): (u32, ObjectPath<'_>, &str, &str) = body.deserialize().ok()?;
        self.ended.push_back(EndedJob {
            path: path.to_string(),
            result: result.to_owned(),
        });
        Some(())
    }

    /// Removes the next signal. A job may end before the call that requested it is answered, so only here its
    /// unit is known.
    fn next(&mut self) -> Option<SystemdSignal> {
        while let Some(job) = self.ended.pop_front() {
            if let Some(unit) = self.begun.remove(&job.path) {
                let result = job.result;
                return Some(if SUCCEEDED.contains(&result.as_str()) {
                    SystemdSignal::Started { unit }
                } else {
                    SystemdSignal::NotStarted { unit, result }
                });
            }
        }
        let unit = self.changed.pop_first()?;
        Some(SystemdSignal::Changed { unit })
    }
}

async fn read(mut signals: impl Stream<Item = zbus::Result<Message>> + Unpin, shared: Arc<Shared>) {
    while let Some(Ok(message)) = signals.next().await {
        let is_noted = shared.state().record(&message).is_some();
        if is_noted {
            shared.news.notify_one();
        }
    }
    shared.state().has_ended = true;
    shared.news.notify_one();
}

/// Decodes a unit's name from its object path: characters other than letters and digits are `_` and two hex
/// digits.
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

//! systemd over D-Bus (`org.freedesktop.systemd1(5)`).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt as _;
use zbus::message::Type;
use zbus::proxy::CacheProperties;
use zbus::{Connection, MatchRule, MessageStream};
use zbus_systemd::systemd1::{ManagerProxy, UnitProxy};

use super::systemd::{Connect, Error, Origin, Systemd, SystemdState};

const SERVICE: &str = "org.freedesktop.systemd1";
const UNITS: &str = "/org/freedesktop/systemd1/unit";
const UNIT_INTERFACE: &str = "org.freedesktop.systemd1.Unit";
/// Tells one boot from another (`random(4)`).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How long systemd may take to answer. It answers before a job is done, but a reload reads all unit files.
const CALL_TIME_MAX: Duration = Duration::from_mins(1);
/// How many signals may wait to be read. After a reload there is one for each unit of the machine.
const SIGNALS_MAX: NonZeroUsize = NonZeroUsize::new(8192).expect("more than none");

/// Which systemd an agent drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// That of the machine.
    System,
    /// That of the user that the agent runs as.
    User,
}

/// A connection to systemd.
pub struct DbusSystemd {
    connection: Connection,
    manager: ManagerProxy<'static>,
    signals: MessageStream,
}

impl Connect for Bus {
    type Systemd = DbusSystemd;

    async fn connect(&self) -> Result<DbusSystemd, Error> {
        let builder = match self {
            Self::System => zbus::connection::Builder::system(),
            Self::User => zbus::connection::Builder::session(),
        };
        let connecting = async {
            let connection = builder.method_timeout(CALL_TIME_MAX).build().await?;
            // Properties that are cached are older than the signals that announce them.
            let manager = ManagerProxy::builder(&connection)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            let signals = MatchRule::builder()
                .msg_type(Type::Signal)
                .sender(SERVICE)
                .interface("org.freedesktop.DBus.Properties")
                .member("PropertiesChanged")
                .path_namespace(UNITS)
                .arg(0, UNIT_INTERFACE)
                .build()?;
            let signals =
                MessageStream::for_match_rule(signals, &connection, Some(SIGNALS_MAX)).await?;
            manager.subscribe().await?;
            Ok(DbusSystemd {
                connection,
                manager,
                signals,
            })
        };
        let connected: zbus::Result<_> = connecting.await;
        connected.map_err(|error| unreachable("connect to systemd", &error))
    }
}

impl Systemd for DbusSystemd {
    async fn instance(&self) -> Result<String, Error> {
        let doing = "ask systemd when it started";
        let boot = std::fs::read_to_string(BOOT_ID);
        let boot = boot.map_err(|error| Error::Unreachable {
            doing,
            message: format!("{BOOT_ID}: {error}"),
        })?;
        let since = self.manager.userspace_timestamp_monotonic().await;
        let since = since.map_err(|error| sort(doing, &error))?;
        Ok(format!("{}:{since}", boot.trim()))
    }

    async fn states(&self, units: Vec<String>) -> Result<BTreeMap<String, SystemdState>, Error> {
        let listed = self.manager.list_units_by_names(units).await;
        let listed = listed.map_err(|error| sort("list units", &error))?;
        let states = listed.into_iter().map(|listed| {
            let (name, _, load, active, sub, ..) = listed;
            (name, SystemdState { load, active, sub })
        });
        Ok(states.collect())
    }

    async fn origin(&self, unit: &str) -> Result<Origin, Error> {
        let doing = "look where a unit comes from";
        let path = self.manager.load_unit(unit.to_owned()).await;
        let path = path.map_err(|error| sort(doing, &error))?;
        let looking = async {
            let unit = UnitProxy::builder(&self.connection)
                .path(path)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            Ok((unit.fragment_path().await?, unit.load_state().await?))
        };
        let looked: zbus::Result<_> = looking.await;
        let (fragment, load) = looked.map_err(|error| sort(doing, &error))?;
        Ok(match load.as_str() {
            "not-found" => Origin::None,
            _ if fragment.is_empty() => Origin::Other,
            _ => Origin::File(PathBuf::from(fragment)),
        })
    }

    async fn link(&self, file: &Path) -> Result<(), Error> {
        let linked = self.manager.link_unit_files(paths(file), true, true).await;
        linked
            .map(drop)
            .map_err(|error| sort("link a unit file", &error))
    }

    async fn enable(&self, file: &Path) -> Result<(), Error> {
        let doing = "enable a unit";
        let enabled = self
            .manager
            .enable_unit_files(paths(file), true, true)
            .await;
        let (says_how, _) = enabled.map_err(|error| sort(doing, &error))?;
        if says_how {
            return Ok(());
        }
        Err(Error::Refused {
            doing,
            message: "its [Install] section says nothing".to_owned(),
        })
    }

    async fn disable(&self, unit: &str) -> Result<(), Error> {
        let disabled = self.manager.disable_unit_files(vec![unit.to_owned()], true);
        is_done("disable a unit", disabled.await)
    }

    async fn reset_failed(&self, unit: &str) -> Result<(), Error> {
        let reset = self.manager.reset_failed_unit(unit.to_owned()).await;
        is_done("reset a failed unit", reset)
    }

    async fn reload(&self) -> Result<(), Error> {
        let reloaded = self.manager.reload().await;
        reloaded.map_err(|error| sort("reload unit files", &error))
    }

    async fn start(&self, unit: &str) -> Result<(), Error> {
        let started = self
            .manager
            .start_unit(unit.to_owned(), "replace".to_owned());
        started
            .await
            .map(drop)
            .map_err(|error| sort("start a unit", &error))
    }

    async fn stop(&self, unit: &str) -> Result<(), Error> {
        let stopped = self
            .manager
            .stop_unit(unit.to_owned(), "replace".to_owned());
        is_done("stop a unit", stopped.await)
    }

    async fn changed(&mut self) -> Result<String, Error> {
        loop {
            let message = self.signals.next().await.transpose();
            let message = message.map_err(|error| unreachable("read signals", &error))?;
            let message = message.ok_or_else(|| Error::Unreachable {
                doing: "read signals",
                message: "the connection has ended".to_owned(),
            })?;
            let header = message.header();
            let path = header.path().map(zbus::ObjectPath::as_str);
            let label = path.and_then(|path| path.strip_prefix(UNITS)?.strip_prefix('/'));
            if let Some(unit) = label.and_then(unescaped) {
                return Ok(unit);
            }
        }
    }
}

fn paths(file: &Path) -> Vec<String> {
    vec![file.to_string_lossy().into_owned()]
}

/// Where a unit that systemd does not know is as good as done.
fn is_done<T>(doing: &'static str, answer: zbus::Result<T>) -> Result<(), Error> {
    match answer.map_err(|error| sort(doing, &error)) {
        Ok(_) | Err(Error::NoSuchUnit) => Ok(()),
        Err(error) => Err(error),
    }
}

fn sort(doing: &'static str, error: &zbus::Error) -> Error {
    let zbus::Error::MethodError(name, text, _) = error else {
        return unreachable(doing, error);
    };
    let message = text.clone().unwrap_or_else(|| name.to_string());
    match name.as_str() {
        "org.freedesktop.systemd1.NoSuchUnit" => Error::NoSuchUnit,
        "org.freedesktop.DBus.Error.NoReply"
        | "org.freedesktop.DBus.Error.Disconnected"
        | "org.freedesktop.DBus.Error.ServiceUnknown"
        | "org.freedesktop.DBus.Error.NameHasNoOwner"
        | "org.freedesktop.DBus.Error.Timeout" => Error::Unreachable { doing, message },
        _ => Error::Refused { doing, message },
    }
}

fn unreachable(doing: &'static str, error: &zbus::Error) -> Error {
    let message = error.to_string();
    Error::Unreachable { doing, message }
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

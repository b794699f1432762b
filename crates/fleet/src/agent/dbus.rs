//! systemd through its D-Bus interface (`org.freedesktop.systemd1(5)`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zbus::Connection;
use zbus::proxy::CacheProperties;
use zbus_systemd::systemd1::{ManagerProxy, UnitProxy};

use super::signals::Signals;
use super::systemd::{Connect, Error, Origin, Systemd, SystemdSignal, SystemdState};

const SERVICE: &str = "org.freedesktop.systemd1";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
/// Job mode: queued jobs of the same unit are replaced.
const REPLACE: &str = "replace";
/// The kernel's id of this boot (`random(4)`).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Timeout of a call to systemd. It answers before the job ends, but a reload reads all unit files first.
const CALL_TIME_MAX: Duration = Duration::from_mins(1);

/// The systemd instance that an agent drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// The machine's.
    System,
    /// That of the agent's user.
    User,
}

pub struct DbusSystemd {
    connection: Connection,
    manager: ManagerProxy<'static>,
    signals: Signals,
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
            // Cached properties may be older than the signals that announce them.
            let manager = ManagerProxy::builder(&connection)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            let signals = Signals::listen(&connection).await?;
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
        let since = since.map_err(|error| classify(doing, &error))?;
        Ok(format!("{}:{since}", boot.trim()))
    }

    async fn states(&self, units: Vec<String>) -> Result<BTreeMap<String, SystemdState>, Error> {
        let listed = self.manager.list_units_by_names(units).await;
        let listed = listed.map_err(|error| classify("list units", &error))?;
        let states = listed.into_iter().map(|listed| {
            let (name, _, load, active, sub, _, _, _, job, _) = listed;
            let is_start = matches!(job.as_str(), "start" | "restart");
            let mut state = SystemdState {
                load,
                active,
                sub,
                start_is_queued: false,
            };
            // While a start is queued, systemd still reports the earlier state.
            state.start_is_queued = is_start && state.has_stopped();
            (name, state)
        });
        Ok(states.collect())
    }

    async fn missing_triggered(&self, unit: &str) -> Result<Vec<String>, Error> {
        let doing = "ask which units a unit triggers";
        let asking = async { self.unit(unit).await?.triggers().await };
        let triggered = asking.await.map_err(|error| classify(doing, &error))?;
        if triggered.is_empty() {
            return Ok(triggered);
        }
        let states = self.states(triggered).await?.into_iter();
        let missing = states.filter(|(_, state)| state.load != "loaded");
        Ok(missing.map(|(unit, _)| unit).collect())
    }

    async fn result(&self, unit: &str) -> Result<String, Error> {
        let asking = async {
            let path = self.manager.load_unit(unit.to_owned()).await?;
            // Each type of unit has this property in its own interface; targets, slices and devices do not have it.
            let (_, kind) = unit.rsplit_once('.').unwrap_or_default();
            let (first, rest) = kind.split_at(kind.len().min(1));
            let interface = format!("{SERVICE}.{}{rest}", first.to_uppercase());
            let unit = zbus::Proxy::new(&self.connection, SERVICE, path, interface).await?;
            unit.get_property::<String>("Result").await
        };
        let asked: zbus::Result<_> = asking.await;
        match asked.map_err(|error| classify("ask why a unit has failed", &error)) {
            Err(error @ Error::Unreachable { .. }) => Err(error),
            asked => Ok(asked.unwrap_or_default()),
        }
    }

    async fn invocation(&self, unit: &str) -> Result<Vec<u8>, Error> {
        let asking = async { self.unit(unit).await?.invocation_id().await };
        let asked: zbus::Result<_> = asking.await;
        asked.map_err(|error| classify("ask which run of a unit this is", &error))
    }

    async fn origin(&self, unit: &str) -> Result<Origin, Error> {
        let name = unit;
        let looking = async {
            let unit = self.unit(name).await?;
            let fragment = unit.fragment_path().await?;
            if unit.load_state().await? == "not-found" {
                return Ok(Origin::None);
            }
            if !fragment.is_empty() {
                return Ok(Origin::File(PathBuf::from(fragment)));
            }
            // systemd makes slices and devices of any name. A slice without a file is also active while it has units.
            let is_slice = name
                .rsplit_once('.')
                .is_some_and(|(_, kind)| kind == "slice");
            let is_made_of_its_name =
                is_slice || matches!(unit.active_state().await?.as_str(), "inactive" | "failed");
            Ok(if is_made_of_its_name && !unit.perpetual().await? {
                Origin::None
            } else {
                Origin::Other
            })
        };
        let looked: zbus::Result<_> = looking.await;
        looked.map_err(|error| classify("look where a unit comes from", &error))
    }

    async fn link(&self, file: &Path) -> Result<(), Error> {
        let linked = self.manager.link_unit_files(paths(file), true, false).await;
        linked
            .map(drop)
            .map_err(|error| classify("link a unit file", &error))
    }

    async fn enable(&self, file: &Path) -> Result<(), Error> {
        let doing = "enable a unit";
        let enabled = self
            .manager
            .enable_unit_files(paths(file), true, false)
            .await;
        let (says_how, _) = enabled.map_err(|error| classify(doing, &error))?;
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
        reloaded.map_err(|error| classify("reload unit files", &error))
    }

    async fn start(&self, unit: &str) -> Result<(), Error> {
        let begun = self.manager.start_unit(unit.to_owned(), REPLACE.to_owned());
        let job = begun
            .await
            .map_err(|error| classify("start a unit", &error))?;
        self.signals.begun(unit, &job);
        Ok(())
    }

    async fn restart(&self, unit: &str) -> Result<(), Error> {
        let begun = self
            .manager
            .restart_unit(unit.to_owned(), REPLACE.to_owned());
        let job = begun
            .await
            .map_err(|error| classify("restart a unit", &error))?;
        self.signals.begun(unit, &job);
        Ok(())
    }

    async fn stop(&self, unit: &str) -> Result<(), Error> {
        let stopped = self.manager.stop_unit(unit.to_owned(), REPLACE.to_owned());
        is_done("stop a unit", stopped.await)
    }

    async fn next_signal(&mut self) -> Result<SystemdSignal, Error> {
        self.signals.next().await
    }
}

impl DbusSystemd {
    /// The properties of a unit, which is loaded if it exists.
    async fn unit(&self, name: &str) -> zbus::Result<UnitProxy<'static>> {
        let path = self.manager.load_unit(name.to_owned()).await?;
        UnitProxy::builder(&self.connection)
            .path(path)
            .cache_properties(CacheProperties::No)
            .build()
            .await
    }
}

fn paths(file: &Path) -> Vec<String> {
    vec![file.to_string_lossy().into_owned()]
}

/// For calls that have no effect on a unit that systemd does not know: that is success.
fn is_done<T>(doing: &'static str, answer: zbus::Result<T>) -> Result<(), Error> {
    match answer.map_err(|error| classify(doing, &error)) {
        Ok(_) | Err(Error::NoSuchUnit { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn classify(doing: &'static str, error: &zbus::Error) -> Error {
    use zbus::fdo::Error as Standard;
    let message = error.to_string();
    match error {
        zbus::Error::MethodError(name, text, _) => {
            let message = text.clone().unwrap_or(message);
            if name.as_str() == NO_SUCH_UNIT {
                Error::NoSuchUnit { message }
            } else {
                Error::Refused { doing, message }
            }
        }
        zbus::Error::FDO(standard) => match &**standard {
            Standard::NoReply(_)
            | Standard::Timeout(_)
            | Standard::TimedOut(_)
            | Standard::Disconnected(_)
            | Standard::ServiceUnknown(_)
            | Standard::NameHasNoOwner(_)
            | Standard::ZBus(_) => Error::Unreachable { doing, message },
            _ => Error::Refused { doing, message },
        },
        _ => Error::Unreachable { doing, message },
    }
}

fn unreachable(doing: &'static str, error: &zbus::Error) -> Error {
    let message = error.to_string();
    Error::Unreachable { doing, message }
}

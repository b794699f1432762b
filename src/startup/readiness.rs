//! Whether the database is available, with the schema that this program needs.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::database;
use crate::config::Settings;
use hyperfleet_server_kit::http::Gate;
use hyperfleet_storage::{DatabaseStatus, Probe, SchemaStatus, Store};

/// How often the database is asked.
const PERIOD: Duration = Duration::from_secs(1);
/// Failures in a row before the service is not ready: a moment's trouble must not take all instances away from their
/// clients together.
const FAILURES: u32 = 3;

const NO_CONNECTION: &str = "Database connection not available";
const UNAVAILABLE: &str = "database unavailable";
const TIMEOUT: &str = "database ping timeout";
/// Reads work, so the service stays ready.
const READ_ONLY: &str = "the database is read-only: changes get 503";

/// Waits for the database's answer, as long as the settings allow, and then for the schema, without a limit.
///
/// # Errors
///
/// The database does not answer in time, or refuses the login.
pub(super) async fn wait(
    probe: &mut Probe,
    settings: &Settings,
    gate: &Gate,
) -> anyhow::Result<()> {
    gate.set_unready_reason(Some(NO_CONNECTION.to_owned()));
    let schema = database::reach(probe, &settings.database).await?;
    let mut lacking = lack(&schema);
    if let Some(reason) = &lacking {
        tracing::warn!(fault = reason, "not ready");
    }
    while lacking.is_some() {
        gate.set_unready_reason(lacking);
        sleep(PERIOD).await;
        lacking = match check(probe, settings.health.db_ping_timeout).await {
            Ok(status) => lack(&status.schema),
            Err(reason) => Some(reason.to_owned()),
        };
    }
    gate.set_unready_reason(None);
    Ok(())
}

/// Keeps the gate up to date with the state of the database, beginning with the gate's own.
///
/// If the database fails, the idle connections of `store` are closed: after a restart, a restore or a failover they
/// lead to a server that has ended.
pub(super) async fn watch(mut probe: Probe, ping_time: Duration, gate: Gate, store: Store) {
    let mut health = Health {
        unready_reason: gate.unready_reason(),
        ..Health::default()
    };
    loop {
        sleep(PERIOD).await;
        let said = check(&mut probe, ping_time).await;
        // A slow database still has them.
        if said.as_ref().err() == Some(&UNAVAILABLE) {
            store.forget_idle();
        }
        if let Ok(status) = &said {
            warn_if_read_only(&gate, status.is_read_only);
        }
        if !health.changes_after(said.map(|status| status.schema)) {
            continue;
        }
        if let Some(reason) = &health.unready_reason {
            tracing::warn!(fault = reason, "not ready");
        } else {
            tracing::info!("ready again");
        }
        gate.set_unready_reason(health.unready_reason.clone());
    }
}

/// Says in `/readyz` and in the log whether changes are possible.
fn warn_if_read_only(gate: &Gate, is_read_only: bool) {
    let warning = is_read_only.then_some(READ_ONLY);
    if gate.warning() == warning {
        return;
    }
    gate.set_warning(warning);
    if is_read_only {
        tracing::warn!("database is read-only");
    } else {
        tracing::info!("database is writable again");
    }
}

async fn check(probe: &mut Probe, ping_time: Duration) -> Result<DatabaseStatus, &'static str> {
    match timeout(ping_time, probe.status()).await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(error)) => {
            let error = anyhow::Error::from(error);
            tracing::debug!(error = format!("{error:#}"), "database probe failed");
            Err(UNAVAILABLE)
        }
        Err(_) => Err(TIMEOUT),
    }
}

/// What the database lacks, if anything.
fn lack(schema: &SchemaStatus) -> Option<String> {
    let number = match schema.missing {
        0 => return None,
        1 => "1 migration that this program needs".to_owned(),
        number => format!("{number} migrations that this program needs"),
    };
    Some(format!(
        "the database lacks {number}: run `hyperfleet-api migrate`"
    ))
}

/// The state of the database, by its last answers.
#[derive(Debug, Default)]
struct Health {
    failures: u32,
    unready_reason: Option<String>,
}

impl Health {
    /// Whether another answer changes the reason.
    fn changes_after(&mut self, said: Result<SchemaStatus, &'static str>) -> bool {
        let reason = match said {
            Ok(schema) => {
                self.failures = 0;
                lack(&schema)
            }
            Err(reason) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures < FAILURES {
                    return false;
                }
                Some(reason.to_owned())
            }
        };
        let changes = reason != self.unready_reason;
        self.unready_reason = reason;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(missing: usize) -> SchemaStatus {
        SchemaStatus {
            applied: 5,
            missing,
            unknown: 0,
        }
    }

    #[test]
    fn three_failures_in_a_row_count_and_one_answer() {
        let mut health = Health::default();
        for said in [
            Err(TIMEOUT),
            Err(UNAVAILABLE),
            Ok(schema(0)),
            Err(TIMEOUT),
            Err(TIMEOUT),
        ] {
            assert!(!health.changes_after(said));
        }
        assert!(health.changes_after(Err(UNAVAILABLE)));
        assert_eq!(health.unready_reason.as_deref(), Some(UNAVAILABLE));
        assert!(!health.changes_after(Err(UNAVAILABLE)));
        assert!(health.changes_after(Err(TIMEOUT)));
        assert_eq!(health.unready_reason.as_deref(), Some(TIMEOUT));
        assert!(health.changes_after(Ok(schema(0))));
        assert_eq!(health.unready_reason, None);
        assert!(!health.changes_after(Ok(schema(0))));
    }

    #[test]
    fn a_schema_that_is_taken_away_shows_at_once() {
        let mut health = Health::default();
        assert!(health.changes_after(Ok(schema(2))));
        let reason = health.unready_reason.clone().unwrap();
        assert!(reason.contains("2 migrations") && reason.contains("`hyperfleet-api migrate`"));
        assert!(lack(&schema(1)).unwrap().contains("1 migration that"));
        // A newer schema is one to serve from.
        let newer = SchemaStatus {
            unknown: 3,
            ..schema(0)
        };
        assert!(health.changes_after(Ok(newer)));
        assert_eq!(health.unready_reason, None);
    }
}

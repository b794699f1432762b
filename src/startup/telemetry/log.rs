//! The log.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Format, Level, Logging};

/// What tells, as errors, of requests that are no HTTP: whoever sends these must not fill the log.
const NO_HTTP: &str = "actix_http::h1::dispatcher";

/// Starts the log, on standard error so that output stays clean. `RUST_LOG` overrides the level.
pub(super) fn start(logging: &Logging) {
    let level = match logging.level {
        Level::Debug => "hyperfleet=debug,info",
        Level::Info => "info,sqlx=warn,actix_server=warn",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},{NO_HTTP}=off")));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // Fails only if a log was started before, as in tests: that one stays.
    let _ = match logging.format {
        Format::Json => log
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .try_init(),
        Format::Text => {
            let ansi = std::io::stderr().is_terminal();
            log.with_target(false).with_ansi(ansi).try_init()
        }
    };
}

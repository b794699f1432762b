//! Where the log goes, and how much of it.

use std::io::IsTerminal as _;

use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use super::format::{Constants, Json, JsonFields, Text, TextFields};
use crate::config::{Format, Level, Logging, Output};

/// What tells, as errors, of requests that are no HTTP: whoever sends these must not fill the log.
const NO_HTTP: &str = "actix_http::h1::dispatcher=off";
/// What exports traces says once more what `export` says now and then.
const EXPORT: &str = "opentelemetry=off,opentelemetry_sdk=off,opentelemetry_otlp=off";
/// The target of single statements.
const STATEMENTS: &str = "hyperfleet::sql";

/// The layer that writes the log. `RUST_LOG` overrides what it lets through.
pub(super) fn layer<S>(
    logging: &Logging,
    shows_statements: bool,
    constants: &Constants,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(directives(logging.level, shows_statements)));
    let (writer, is_terminal) = match logging.output {
        Output::Stdout => (
            BoxMakeWriter::new(std::io::stdout),
            std::io::stdout().is_terminal(),
        ),
        Output::Stderr => (
            BoxMakeWriter::new(std::io::stderr),
            std::io::stderr().is_terminal(),
        ),
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(is_terminal && logging.format == Format::Text);
    match logging.format {
        Format::Json => layer
            .event_format(Json::new(constants))
            .fmt_fields(JsonFields)
            .with_filter(filter)
            .boxed(),
        Format::Text => layer
            .event_format(Text)
            .fmt_fields(TextFields)
            .with_filter(filter)
            .boxed(),
    }
}

/// What each level lets through.
fn directives(level: Level, shows_statements: bool) -> String {
    let level = match level {
        Level::Debug => "info,hyperfleet=debug",
        Level::Info => "info,actix_server=warn",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    // Slow statements are told at every level but `error`; all of them only where asked for.
    let statements = match (shows_statements, level) {
        (true, _) => "debug",
        (false, "error") => "error",
        (false, _) => "warn",
    };
    format!("{level},{STATEMENTS}={statements},{NO_HTTP},{EXPORT}")
}

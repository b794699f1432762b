//! The destination and the level of the log.

use std::env::VarError;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;

use tracing_subscriber::layer::Filter;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer, reload};

use super::TelemetrySettings;
use super::format::{Form, Lines};
use super::queue::{self, Queue};
use crate::program;
use crate::settings::{Format, Level, Output};

/// Silences errors about requests that are no HTTP: their senders must not fill the log.
const NO_HTTP: &str = "actix_http::h1::dispatcher=off";
/// Silences messages that the exporter repeats; `export` logs them.
const EXPORT: &str = "opentelemetry=off,opentelemetry_sdk=off,opentelemetry_otlp=off";
/// The variable that overrides the filter, as in other Rust programs.
const VARIABLE: &str = "RUST_LOG";

/// One log per process, created by the first start.
static QUEUE: OnceLock<Queue> = OnceLock::new();
/// Replaces its level, if it may change.
static REPLACE: OnceLock<Replace> = OnceLock::new();

type Replace = Box<dyn Fn(Level) -> bool + Send + Sync>;

/// The layer that writes the log, with warnings. `RUST_LOG` overrides the filter, unless it is invalid.
///
/// # Errors
/// The thread that writes cannot be started.
pub(super) fn layer<S>(
    settings: &TelemetrySettings<'_>,
) -> io::Result<(impl Layer<S> + use<S>, Vec<String>)>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    let logging = settings.logging;
    let mut notes = Vec::new();
    let named = named(std::env::var(VARIABLE), &mut notes);
    let changes = settings.has_changing_level && named.is_none();
    let by_level = || EnvFilter::new(directives(logging.level, settings.verbose_target));
    let filter = named.unwrap_or_else(by_level);
    let filter: Box<dyn Filter<S> + Send + Sync> = if changes {
        Box::new(changing(filter, settings.verbose_target))
    } else {
        Box::new(filter)
    };
    let queue = if let Some(queue) = QUEUE.get() {
        queue.clone()
    } else {
        let queue = Queue::start(sink(logging.output))?;
        QUEUE.get_or_init(|| queue).clone()
    };
    let form = match logging.format {
        Format::Json => Form::json(settings.build, settings.hostname),
        Format::Text => Form::Text {
            is_coloured: match logging.output {
                Output::Stdout => io::stdout().is_terminal(),
                Output::Stderr => io::stderr().is_terminal(),
            },
        },
    };
    let lines = Lines::new(form, move |line: &[u8]| queue.write(line));
    Ok((lines.with_filter(filter), notes))
}

/// The same filter, which [`set_level`] may replace.
fn changing<S: tracing::Subscriber>(
    filter: EnvFilter,
    verbose_target: Option<(&'static str, bool)>,
) -> reload::Layer<EnvFilter, S> {
    let (filter, handle) = reload::Layer::new(filter);
    let replace = move |level| {
        let filter = EnvFilter::new(directives(level, verbose_target));
        // Fails only if logging has ended.
        handle.reload(filter).is_ok()
    };
    // Fails only if there is a log already, as in tests: that one stays.
    let _ = REPLACE.set(Box::new(replace));
    filter
}

/// Changes the level. Returns whether it had an effect.
pub fn set_level(level: Level) -> bool {
    REPLACE.get().is_some_and(|replace| replace(level))
}

/// A separate handle on the destination: writers to standard output do not wait for the log's reader.
fn sink(output: Output) -> Box<dyn Write + Send> {
    let handle = match output {
        Output::Stdout => io::stdout().as_fd().try_clone_to_owned(),
        Output::Stderr => io::stderr().as_fd().try_clone_to_owned(),
    };
    match (handle, output) {
        (Ok(handle), _) => Box::new(File::from(handle)),
        (Err(_), Output::Stdout) => Box::new(io::stdout()),
        (Err(_), Output::Stderr) => Box::new(io::stderr()),
    }
}

/// Waits until earlier lines are written, as long as they are being read ([`Queue::flush`]).
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush();
    }
}

/// Logs what must not be lost, and waits until it is written, as long as there is a reader. Returns whether the
/// log accepted it: there may be no log yet, or it may filter the line, or fail.
pub fn log_last(say: impl FnOnce()) -> bool {
    let line = queue::said(say);
    let Some(queue) = QUEUE.get().filter(|_| !line.is_empty()) else {
        return false;
    };
    queue.push_last(&line);
    queue.flush();
    !queue.has_failed()
}

/// Checks that the log shows anything of this program at all. A misspelt level counts as the name of a library,
/// and silences everything else. Only standard error is left for the message then.
pub(super) fn check_shows_program() {
    let Ok(text) = std::env::var(VARIABLE) else {
        return;
    };
    let is_heard = !queue::said(|| tracing::error!("log filter check")).is_empty();
    if !is_heard && !text.trim().eq_ignore_ascii_case("off") {
        // It may have no reader either.
        let _ = writeln!(
            io::stderr(),
            "{}: with {VARIABLE}={text:?} the log shows nothing of this program: \
             name a level (error, warn, info, debug), or hyperfleet=LEVEL",
            program::name()
        );
    }
}

/// The directives in `RUST_LOG`, if they are valid.
fn named(text: Result<String, VarError>, notes: &mut Vec<String>) -> Option<EnvFilter> {
    let error = match text {
        Err(VarError::NotPresent) => return None,
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => match EnvFilter::builder().parse(&text) {
            Ok(filter) => return Some(filter),
            Err(error) => format!("{text:?} is invalid ({error})"),
        },
        Err(VarError::NotUnicode(_)) => "it is no text".to_owned(),
    };
    notes.push(format!(
        "{VARIABLE} is ignored: {error}; using logging.level"
    ));
    None
}

/// The directives of each level.
fn directives(level: Level, verbose_target: Option<(&'static str, bool)>) -> String {
    let level = match level {
        Level::Debug => "info,hyperfleet=debug",
        Level::Info => "info,actix_server=warn",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    let verbose = verbose_target.map_or_else(String::new, |(target, is_verbose)| {
        // Warnings are logged at every level except `error`, everything else only on request.
        let most = match (is_verbose, level) {
            (true, _) => "debug",
            (false, "error") => "error",
            (false, _) => "warn",
        };
        format!(",{target}={most}")
    });
    format!("{level},{NO_HTTP},{EXPORT}{verbose}")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn an_empty_variable_is_ignored_and_an_invalid_one_is_reported() {
        let read = |text: Result<&str, VarError>| {
            let mut notes = Vec::new();
            let filter = named(text.map(ToOwned::to_owned), &mut notes);
            (filter.map(|filter| filter.to_string()), notes)
        };
        let nothing = (None, Vec::new());
        assert_eq!(read(Err(VarError::NotPresent)), nothing);
        assert_eq!(read(Ok("")), nothing);
        assert_eq!(read(Ok(" ")), nothing);
        let good = read(Ok("warn,hyperfleet=debug"));
        assert_eq!(good, (Some("hyperfleet=debug,warn".to_owned()), Vec::new()));
        for wrong in ["hyperfleet=loud", "hyperfleet==debug", "[{"] {
            let (filter, notes) = read(Ok(wrong));
            assert_eq!((filter, notes.len()), (None, 1), "{wrong}");
            assert!(notes[0].starts_with("RUST_LOG is ignored"), "{notes:?}");
            assert!(notes[0].contains(wrong), "{notes:?}");
        }
        let (filter, notes) = read(Err(VarError::NotUnicode(OsString::from_vec(vec![0xff]))));
        assert_eq!((filter, notes.len()), (None, 1));
    }
}

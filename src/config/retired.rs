//! Settings of older versions, so that files written for them still work: each is taken for what it
//! means now, or for nothing, and said to be gone.

use std::path::Path;

use figment::value::{Dict, Value};

use super::SettingsArgs;
use super::catalogue::setting;
use super::fault::Fault;
use super::layers::{Layer, Origin};

/// Where traces are switched on.
const TRACES: &str = "tracing.enabled";
/// Where they once were.
const OTEL: &str = "HYPERFLEET_LOGGING_OTEL_ENABLED";
/// What no version ever read.
const INCLUSION: &str = "HYPERFLEET_METRICS_LABEL_METRICS_INCLUSION_DURATION";
/// Its flag, without the dashes.
pub(super) const INCLUSION_FLAG: &str = "metrics-label-metrics-inclusion-duration";
const INCLUSION_NOTE: &str = "metrics.label_metrics_inclusion_duration does nothing: leave it out";

/// Whether a variable is one of an older version.
pub(super) fn is_variable(name: &str) -> bool {
    name == OTEL || name == INCLUSION
}

/// Takes what is retired out of a file.
pub(super) fn from_file(dict: &mut Dict, path: &Path, layer: &mut Layer) {
    if let Some(otel) = take(dict, "logging", "otel") {
        otel_from_file(otel, path, layer);
    }
    if take(dict, "metrics", "label_metrics_inclusion_duration").is_some() {
        layer.notes.push(INCLUSION_NOTE.to_owned());
    }
    if dict.remove("adapters").is_some() {
        layer.notes.push(
            "adapters is gone: name the adapters of each kind in entities[].required_adapters"
                .to_owned(),
        );
    }
}

/// The section that traces once had, which held one setting. As everywhere, what has no value says
/// nothing.
fn otel_from_file(otel: Value, path: &Path, layer: &mut Layer) {
    let mut members = match otel {
        Value::Empty(..) => return,
        Value::Dict(_, members) => members,
        _ => {
            let file = path.display();
            let text = format!(
                "logging.otel (from {file}): must hold settings; say tracing.enabled instead"
            );
            layer.faults.push(Fault::of_key(TRACES, text));
            return;
        }
    };
    match members.remove("enabled") {
        None | Some(Value::Empty(..)) => {}
        Some(enabled) => traces(enabled, Origin::File(path.to_owned()), layer),
    }
    for name in members.keys() {
        let file = path.display();
        let text = format!("logging.otel.{name} (from {file}): there is no such setting");
        layer.faults.push(Fault::of_key("logging", text));
    }
}

/// Takes what is retired from the environment.
pub(super) fn from_environment(layer: &mut Layer) {
    if let Some(setting) = setting(TRACES)
        && let Some(enabled) = layer.variable(setting, OTEL)
    {
        let enabled = enabled.to_ascii_lowercase();
        let value = enabled
            .parse::<bool>()
            .map_or(Value::from(enabled), Value::from);
        traces(value, Origin::Variable(OTEL.to_owned()), layer);
    }
    if std::env::var_os(INCLUSION).is_some_and(|text| !text.is_empty()) {
        layer.notes.push(INCLUSION_NOTE.to_owned());
    }
}

/// Takes what is retired from the flags.
pub(super) fn from_flags(args: &SettingsArgs, layer: &mut Layer) {
    if args.has_inclusion {
        layer.notes.push(INCLUSION_NOTE.to_owned());
    }
}

/// `tracing.enabled`, under the name that it had: a weaker word than that under its own.
fn traces(value: Value, origin: Origin, layer: &mut Layer) {
    let Some(setting) = setting(TRACES) else {
        return;
    };
    layer.notes.push(format!(
        "logging.otel.enabled (from {origin}) is now tracing.enabled"
    ));
    match setting.check(value) {
        Ok(value) => {
            layer.older.insert(setting.key, (value, origin));
        }
        Err(fault) => {
            let text = format!("logging.otel.enabled (from {origin}): {fault}");
            layer.faults.push(Fault::of_key(TRACES, text));
        }
    }
}

fn take(dict: &mut Dict, section: &str, name: &str) -> Option<Value> {
    match dict.get_mut(section) {
        Some(Value::Dict(_, section)) => section.remove(name),
        _ => None,
    }
}

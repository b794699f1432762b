//! Settings of older versions, so that files written for them still work: each is taken for what it
//! means now, or for nothing, and said to be gone.

use std::path::Path;

use figment::value::{Dict, Value};

use super::catalogue::setting;
use super::layers::{Layer, Origin, variable};

/// Where traces were once switched on.
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
    let otel = take(dict, "logging", "otel");
    if let Some(Value::Dict(_, otel)) = otel
        && let Some(enabled) = otel.get("enabled")
    {
        traces(enabled.clone(), Origin::File(path.to_owned()), layer);
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

/// Takes what is retired from the environment.
pub(super) fn from_environment(layer: &mut Layer) {
    if let Some(enabled) = variable(OTEL) {
        let enabled = enabled.to_ascii_lowercase();
        let value = enabled
            .parse::<bool>()
            .map_or(Value::from(enabled), Value::from);
        traces(value, Origin::Variable(OTEL.to_owned()), layer);
    }
    if variable(INCLUSION).is_some() {
        layer.notes.push(INCLUSION_NOTE.to_owned());
    }
}

/// `tracing.enabled`, under the name that it had: a weaker word than that under its own.
fn traces(value: Value, origin: Origin, layer: &mut Layer) {
    let Some(setting) = setting("tracing.enabled") else {
        return;
    };
    layer.notes.push(format!(
        "logging.otel.enabled (from {origin}) is now tracing.enabled"
    ));
    match setting.check(value) {
        Ok(value) => {
            layer.older.insert(setting.key, (value, origin));
        }
        Err(fault) => layer
            .faults
            .push(format!("logging.otel.enabled (from {origin}): {fault}")),
    }
}

fn take(dict: &mut Dict, section: &str, name: &str) -> Option<Value> {
    match dict.get_mut(section) {
        Some(Value::Dict(_, section)) => section.remove(name),
        _ => None,
    }
}

//! Traces, if the standard `OTEL_…` variables name a collector. Without one there is no layer, and spans cost
//! nothing.

use std::time::Duration;

use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, Protocol,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::registry::LookupSpan;

use super::collector::{self, Variables};
use super::export::Exporter;
use crate::settings::Tracing;

/// How long the export of the last spans may take.
pub const FLUSH_TIME_MAX: Duration = Duration::from_secs(4);
/// Instrumentation scope of the spans.
const SCOPE: &str = "hyperfleet-api";

/// The traces of a program. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// The layer that exports spans, if any are exported.
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let provider = self.0.as_ref()?;
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer(SCOPE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        // Log lines do not become span events.
        let is_ours = |metadata: &tracing::Metadata<'_>| {
            metadata.is_span() && metadata.target().starts_with("hyperfleet")
        };
        let filter = filter_fn(is_ours).with_max_level_hint(LevelFilter::INFO);
        Some(layer.with_filter(filter))
    }

    /// Exports the last spans, for at most four seconds, the time that the listeners of health and metrics may
    /// take meanwhile. A second call has no effect.
    pub async fn end(self) {
        if let Some(provider) = self.0 {
            let end = move || provider.shutdown_with_timeout(FLUSH_TIME_MAX);
            // Failures of the collector are logged already.
            let _ = tokio::time::timeout(FLUSH_TIME_MAX, tokio::task::spawn_blocking(end)).await;
        }
    }
}

/// Starts traces if a collector is configured. Returns warnings: an error here stops nothing.
pub(super) fn start(settings: &Tracing, version: &'static str) -> (Traces, Vec<String>) {
    let variables = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut notes = Vec::new();
    let Some(endpoint) = endpoint(&variables).filter(|_| settings.enabled) else {
        return (Traces::default(), notes);
    };
    let sampler = sampler(&variables, &mut notes);
    let protocol = protocol(&variables, &mut notes);
    global::set_text_map_propagator(propagator(&variables, &mut notes));
    notes.extend(collector::unsupported(&variables));
    match collector::exporter(protocol, &endpoint, &variables) {
        Ok(otlp) => {
            let resource = Resource::builder()
                .with_service_name(settings.service_name.clone())
                .with_attribute(KeyValue::new("service.version", version))
                .build();
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(Exporter::new(otlp, Handle::current()))
                .with_sampler(sampler)
                .with_resource(resource)
                .build();
            (Traces(Some(provider)), notes)
        }
        Err(error) => {
            notes.push(format!("no traces: {error:#}"));
            (Traces::default(), notes)
        }
    }
}

/// The configured destination.
fn endpoint(variables: Variables<'_>) -> Option<String> {
    let is_off = variables("OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"))
        || variables("OTEL_TRACES_EXPORTER").is_some_and(|v| v == "none");
    let endpoint = variables(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)
        .or_else(|| variables(OTEL_EXPORTER_OTLP_ENDPOINT));
    endpoint.filter(|_| !is_off)
}

fn protocol(variables: Variables<'_>, notes: &mut Vec<String>) -> Protocol {
    let names = [
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
        OTEL_EXPORTER_OTLP_PROTOCOL,
    ];
    match names.into_iter().find_map(variables).as_deref() {
        None | Some("grpc") => Protocol::Grpc,
        Some("http/protobuf") => Protocol::HttpBinary,
        Some(other) => {
            notes.push(format!(
                "{OTEL_EXPORTER_OTLP_PROTOCOL}: \"{other}\" is neither grpc nor http/protobuf; using grpc"
            ));
            Protocol::Grpc
        }
    }
}

fn sampler(variables: Variables<'_>, notes: &mut Vec<String>) -> Sampler {
    let name = variables("OTEL_TRACES_SAMPLER");
    let name = name.as_deref().unwrap_or("parentbased_traceidratio");
    let ratio = variables("OTEL_TRACES_SAMPLER_ARG").map(|text| (text.parse::<f64>(), text));
    let ratio = match ratio {
        Some((Ok(ratio), _)) if (0.0..=1.0).contains(&ratio) => ratio,
        Some((_, text)) => {
            notes.push(format!(
                "OTEL_TRACES_SAMPLER_ARG: \"{text}\" is no number from 0 to 1; using 1"
            ));
            1.0
        }
        None => 1.0,
    };
    let parent = |sampler| Sampler::ParentBased(Box::new(sampler));
    match name {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => Sampler::TraceIdRatioBased(ratio),
        "parentbased_always_on" => parent(Sampler::AlwaysOn),
        "parentbased_always_off" => parent(Sampler::AlwaysOff),
        "parentbased_traceidratio" => parent(Sampler::TraceIdRatioBased(ratio)),
        other => {
            notes.push(format!(
                "OTEL_TRACES_SAMPLER: \"{other}\" is unknown; using parentbased_traceidratio"
            ));
            parent(Sampler::TraceIdRatioBased(ratio))
        }
    }
}

fn propagator(variables: Variables<'_>, notes: &mut Vec<String>) -> TextMapCompositePropagator {
    let names = variables("OTEL_PROPAGATORS").unwrap_or_else(|| "tracecontext,baggage".to_owned());
    let mut propagators: Vec<Box<dyn TextMapPropagator + Send + Sync>> = Vec::new();
    for name in names.split(',').map(str::trim) {
        match name {
            "tracecontext" => propagators.push(Box::new(TraceContextPropagator::new())),
            "baggage" => propagators.push(Box::new(BaggagePropagator::new())),
            "none" | "" => {}
            other => notes.push(format!(
                "OTEL_PROPAGATORS: \"{other}\" is not supported; use tracecontext or baggage"
            )),
        }
    }
    TextMapCompositePropagator::new(propagators)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables_of(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| {
            let found = pairs.iter().find(|pair| pair.0 == name);
            found.map(|pair| pair.1.to_owned())
        }
    }

    #[test]
    fn only_a_named_collector_is_sent_to() {
        let traces = (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, "http://c:4317");
        assert_eq!(traces.0, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        assert!(
            endpoint(&variables_of(&[(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://c:4317"
            )]))
            .is_some()
        );
        assert!(
            endpoint(&variables_of(&[(
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "http://c:4317"
            )]))
            .is_some()
        );
        assert!(endpoint(&variables_of(&[])).is_none());
        for off in [
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ] {
            let variables = |name: &str| {
                let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
                let found = [endpoint, off].into_iter().find(|pair| pair.0 == name);
                found.map(|pair| pair.1.to_owned())
            };
            assert!(endpoint(&variables).is_none(), "{off:?}");
        }
    }

    #[test]
    fn samplers_have_their_standard_names_and_mistakes_are_reported() {
        let said = |pairs| {
            let mut notes = Vec::new();
            let sampler = sampler(&variables_of(pairs), &mut notes);
            (format!("{sampler:?}"), notes.len())
        };
        let default = "ParentBased(TraceIdRatioBased(1.0))".to_owned();
        assert_eq!(said(&[]), (default.clone(), 0));
        let half = ("OTEL_TRACES_SAMPLER_ARG", "0.5");
        assert_eq!(
            said(&[("OTEL_TRACES_SAMPLER_ARG", "2")]),
            (default.clone(), 1)
        );
        assert_eq!(said(&[("OTEL_TRACES_SAMPLER", "dice")]), (default, 1));
        assert_eq!(half.1.parse::<f64>(), Ok(0.5));
        let ratio = said(&[
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
        ]);
        assert_eq!(ratio, ("TraceIdRatioBased(0.5)".to_owned(), 0));
        let off = said(&[("OTEL_TRACES_SAMPLER", "always_off")]);
        assert_eq!(off, ("AlwaysOff".to_owned(), 0));
    }

    #[test]
    fn other_protocols_and_propagators_are_reported() {
        let mut notes = Vec::new();
        let variables = variables_of(&[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_PROPAGATORS", "tracecontext,b3"),
        ]);
        assert_eq!(protocol(&variables, &mut notes), Protocol::Grpc);
        let propagator = propagator(&variables, &mut notes);
        let mut fields: Vec<_> = propagator.fields().collect();
        fields.sort_unstable();
        assert_eq!(fields, ["traceparent", "tracestate"]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        let http = variables_of(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]);
        assert_eq!(protocol(&http, &mut notes), Protocol::HttpBinary);
    }
}

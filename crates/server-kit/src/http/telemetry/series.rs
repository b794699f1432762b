//! Metrics of requests. Every label has few values, whatever clients send: known methods, paths of routes,
//! status codes.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use metrics::SharedString;

const IN_FLIGHT: &str = "hyperfleet_api_requests_in_flight";
const ANSWERED: &str = "hyperfleet_api_requests_total";
const DURATION: &str = "hyperfleet_api_request_duration_seconds";

/// The path of a route, as mounted and as counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePath {
    /// `/api/hyperfleet/v1/clusters/{id}`
    pub(super) template: Arc<str>,
    /// `/api/hyperfleet/v1/clusters/-`; none where requests are not counted.
    label: Option<Arc<str>>,
}

impl RoutePath {
    /// From a path with `{x}` for variable segments.
    pub fn new(template: &str) -> Self {
        let label = template.split('/').map(|segment| {
            let varies = segment.starts_with('{');
            if varies { "-" } else { segment }
        });
        let label: Vec<_> = label.collect();
        Self {
            template: template.into(),
            label: Some(label.join("/").into()),
        }
    }

    /// Of a path whose requests are logged, but not counted.
    pub fn uncounted(template: &str) -> Self {
        Self {
            template: template.into(),
            label: None,
        }
    }
}
/// Counts a started request.
pub(super) fn begin() {
    metrics::gauge!(IN_FLIGHT).increment(1.0);
}

/// Counts a request that is answered or abandoned. Requests without a route are counted together.
pub(super) fn end(
    method: &Method,
    route: Option<&RoutePath>,
    status: StatusCode,
    elapsed: Duration,
) {
    metrics::gauge!(IN_FLIGHT).decrement(1.0);
    let path = match route.map(|route| &route.label) {
        Some(Some(label)) => SharedString::from(Arc::clone(label)),
        Some(None) => return,
        None => SharedString::const_str("/-"),
    };
    let labels = [
        metrics::Label::new("method", method_label(method)),
        metrics::Label::new("path", path),
        metrics::Label::new("code", status.as_str().to_owned()),
    ];
    metrics::counter!(ANSWERED, labels.iter()).increment(1);
    metrics::histogram!(DURATION, labels.iter()).record(elapsed);
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_do_not_stand_in_labels() {
        for (template, label) in [
            ("/api/hyperfleet/v1/audit", "/api/hyperfleet/v1/audit"),
            (
                "/v1/clusters/{parent_id}/nodepools/{id}/statuses",
                "/v1/clusters/-/nodepools/-/statuses",
            ),
            ("/v1/openapi/{file}", "/v1/openapi/-"),
        ] {
            assert_eq!(RoutePath::new(template).label.as_deref(), Some(label));
        }
    }
}

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

/// The output in this form.
fn log_text(form: Form) -> String {
    let written = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&written);
    let write = move |line: &[u8]| lines.lock().unwrap().extend_from_slice(line);
    let layer = Lines::new(form, write);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log_lines);
    String::from_utf8(written.lock().unwrap().clone()).unwrap()
}

fn log_lines() {
    let span = tracing::error_span!(
        "request",
        request_id = "r1",
        trace_id = tracing::field::Empty,
        url.path = "/x",
    );
    span.in_scope(|| {
        span.record("trace_id", "t1");
        let error = std::io::Error::other("a \"quoted\" cause\nof two lines");
        let error = &error as &(dyn std::error::Error + 'static);
        tracing::warn!(error, count = 3, nothing = None::<&str>, "it happened");
    });
    tracing::info!(took = 1.5, ok = true, "later");
}

#[test]
fn a_line_is_one_json_object_with_what_its_spans_say() {
    let build = Build {
        component: "api",
        version: "1.2.3",
        commit: "abc",
        time: "now",
        compiler: "rustc 1.95.0",
    };
    let text = log_text(Form::json(&build, "here"));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let [first, second] = lines.as_slice() else {
        panic!("{text}");
    };
    let mut first = first.clone();
    let at = first.as_object_mut().unwrap().remove("timestamp").unwrap();
    chrono::DateTime::parse_from_rfc3339(at.as_str().unwrap()).unwrap();
    let expected = serde_json::json!({
        "level": "warn", "message": "it happened", "component": "api", "version": "1.2.3",
        "hostname": "here", "request_id": "r1", "trace_id": "t1", "count": 3,
        "error": "a \"quoted\" cause\nof two lines",
    });
    assert_eq!(first, expected);
    assert_eq!(second["took"], 1.5);
    assert_eq!(second["ok"], true);
    assert_eq!(second["request_id"], Value::Null);
}

#[test]
fn a_line_for_people_is_one_line_whatever_is_in_it() {
    let text = log_text(Form::Text { is_coloured: false });
    let lines: Vec<_> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap().1)
        .collect();
    assert_eq!(
        lines,
        [
            r#" WARN it happened error="a \"quoted\" cause\nof two lines" count=3 request_id=r1 trace_id=t1"#,
            " INFO later took=1.500 ok=true",
        ]
    );
}

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Kept {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn say() {
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
    let kept = Kept::default();
    let constants = Constants {
        version: "1.2.3",
        hostname: "here".to_owned(),
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(kept.clone())
        .event_format(Json::new(&constants))
        .fmt_fields(JsonFields);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
    let text = kept.text();
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
    let kept = Kept::default();
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(kept.clone())
        .with_ansi(false)
        .event_format(Text)
        .fmt_fields(TextFields);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
    let text = kept.text();
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

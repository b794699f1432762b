//! Formats log lines as JSON objects, or for people.
//!
//! Each line shows the fields of its spans, except those with a dot in their name, which are for traces only.

use std::fmt::{self, Display};
use std::io::Write as _;

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

use crate::causes::chain;
use crate::program::Build;

/// Formats lines, and passes each to `write`.
pub(super) struct Lines<W> {
    form: Form,
    write: W,
}

pub(super) enum Form {
    /// The constant members as text.
    Json(Vec<u8>),
    Text {
        is_coloured: bool,
    },
}

/// The fields of a span in the form of each line.
#[derive(Default)]
struct SpanFields(Vec<u8>);

impl Form {
    /// One JSON object per line.
    pub(super) fn json(build: &Build, hostname: &str) -> Self {
        let mut constants = Vec::new();
        let mut fields = Fields {
            line: &mut constants,
            is_json: true,
            is_span: false,
        };
        fields.push_str("component", build.component);
        fields.push_str("version", build.version);
        if !hostname.is_empty() {
            fields.push_str("hostname", hostname);
        }
        Self::Json(constants)
    }
}

impl<W: Fn(&[u8]) + 'static> Lines<W> {
    pub(super) fn new(form: Form, write: W) -> Self {
        Self { form, write }
    }

    fn fields<'l>(&self, line: &'l mut Vec<u8>, is_span: bool) -> Fields<'l> {
        Fields {
            line,
            is_json: matches!(self.form, Form::Json(_)),
            is_span,
        }
    }

    /// The time and the level.
    fn begin(&self, level: Level) -> Vec<u8> {
        let mut time = String::new();
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let mut line = Vec::with_capacity(512);
        let _ = match &self.form {
            Form::Json(_) => {
                let level = level.as_str().to_ascii_lowercase();
                write!(line, "{{\"timestamp\":\"{time}\",\"level\":\"{level}\"")
            }
            Form::Text { is_coloured: false } => write!(line, "{time} {level:>5}"),
            Form::Text { is_coloured: true } => {
                let colour = match level {
                    Level::ERROR => 31,
                    Level::WARN => 33,
                    Level::INFO => 32,
                    _ => 34,
                };
                write!(line, "{time} \x1b[{colour}m{level:>5}\x1b[0m")
            }
        };
        line
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Fn(&[u8]) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = SpanFields::default();
            attributes.record(&mut self.fields(&mut fields.0, true));
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(SpanFields(fields)) = span.extensions_mut().get_mut()
        {
            values.record(&mut self.fields(fields, true));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = self.begin(*metadata.level());
        let mut fields = self.fields(&mut line, false);
        event.record(&mut fields);
        if let Form::Json(constants) = &self.form {
            if !metadata.target().starts_with("hyperfleet") {
                fields.push_str("target", metadata.target());
            }
            line.extend_from_slice(constants);
        }
        let spans = context.event_scope(event).into_iter();
        for span in spans.flat_map(Scope::from_root) {
            if let Some(SpanFields(fields)) = span.extensions().get() {
                line.extend_from_slice(fields);
            }
        }
        if let Form::Json(_) = &self.form {
            line.push(b'}');
        }
        line.push(b'\n');
        (self.write)(&line);
    }
}

/// Writes fields one after another.
struct Fields<'l> {
    line: &'l mut Vec<u8>,
    is_json: bool,
    is_span: bool,
}

impl Fields<'_> {
    /// `,"name":value`, or ` name=text`; the message without its name.
    fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized), text: impl Display) {
        if self.is_span && name.contains('.') {
            return;
        }
        if self.is_json {
            self.line.push(b',');
            self.push_json(name);
            self.line.push(b':');
            self.push_json(value);
        } else {
            self.push_text(name, &text.to_string());
        }
    }

    fn push_str(&mut self, name: &str, value: &str) {
        self.push(name, value, value);
    }

    fn push_json(&mut self, value: &(impl Serialize + ?Sized)) {
        // Fails only for values without a JSON form, which do not occur.
        let _ = serde_json::to_writer(&mut *self.line, value);
    }

    /// Escapes line ends, and separates a value from the next name.
    fn push_text(&mut self, name: &str, value: &str) {
        let is_plain = |c: char| !c.is_control() && c != '"' && c != ' ';
        let _ = if name == "message" {
            let is_line = value.chars().all(|c| !c.is_control());
            let escaped = value.escape_debug();
            if is_line {
                write!(self.line, " {value}")
            } else {
                write!(self.line, " {escaped}")
            }
        } else if !value.is_empty() && value.chars().all(is_plain) {
            write!(self.line, " {name}={value}")
        } else {
            write!(self.line, " {name}={value:?}")
        };
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), &value, format_args!("{value:.3}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), &value, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), &value, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.push(field.name(), &value, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), &value, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push_str(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_str(field, &chain(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests;

//! How a line of the log looks: one JSON object, or a line for people.
//!
//! What spans are given is shown with every line below them, but for names with a dot: those follow
//! the conventions of traces, and are for traces.

use std::fmt::{self, Write};
use std::io;
use std::marker::PhantomData;

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::kit::causes::chain;

/// What every line says.
#[derive(Debug, Clone, Default)]
pub(super) struct Constants {
    /// Which program this is.
    pub(super) version: &'static str,
    /// Which machine, where the settings say.
    pub(super) hostname: String,
}

/// One JSON object a line.
pub(super) struct Json {
    /// The members that do not change, as text.
    constants: String,
}

/// The members of a span, as text that only has to be put into an object.
pub(super) struct JsonFields;

/// A line for people.
pub(super) struct Text;

/// ` name=value` for each member of a span.
pub(super) struct TextFields;

impl Json {
    pub(super) fn new(constants: &Constants) -> Self {
        let mut text = ",\"component\":\"api\"".to_owned();
        let mut members = Members::<JsonMember>::of_event(&mut text);
        members.push("version", Value::Text(constants.version));
        if !constants.hostname.is_empty() {
            members.push("hostname", Value::Text(&constants.hostname));
        }
        Self { constants: text }
    }
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        write!(writer, "\",\"level\":\"{}\"", lower(*metadata.level()))?;
        let mut members = Members::<JsonMember>::of_event(&mut writer);
        event.record(&mut members);
        if !metadata.target().starts_with("hyperfleet") {
            members.push("target", Value::Text(metadata.target()));
        }
        members.result?;
        writer.write_str(&self.constants)?;
        push_spans(context, &mut writer)?;
        writer.write_str("}\n")
    }
}

impl<'w> FormatFields<'w> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        Members::<JsonMember>::of_span(&mut writer, &fields)
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        self.format_fields(current.as_writer(), fields)
    }
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let level = event.metadata().level();
        if writer.has_ansi_escapes() {
            let colour = match *level {
                Level::ERROR => 31,
                Level::WARN => 33,
                Level::INFO => 32,
                _ => 34,
            };
            write!(writer, " \x1b[{colour}m{level:>5}\x1b[0m")?;
        } else {
            write!(writer, " {level:>5}")?;
        }
        let mut members = Members::<TextMember>::of_event(&mut writer);
        event.record(&mut members);
        members.result?;
        push_spans(context, &mut writer)?;
        writer.write_char('\n')
    }
}

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        Members::<TextMember>::of_span(&mut writer, &fields)
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        self.format_fields(current.as_writer(), fields)
    }
}

/// What the spans say that an event is in, outermost first.
fn push_spans<S, N>(context: &FmtContext<'_, S, N>, writer: &mut Writer<'_>) -> fmt::Result
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let scope = context.event_scope().into_iter();
    for span in scope.flat_map(tracing_subscriber::registry::Scope::from_root) {
        if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
            writer.write_str(fields)?;
        }
    }
    Ok(())
}

fn lower(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// The value of a field.
#[derive(Serialize)]
#[serde(untagged)]
enum Value<'a> {
    Float(f64),
    Integer(i64),
    Natural(u64),
    Large(u128),
    Flag(bool),
    Text(&'a str),
}

/// One way to write a member.
trait Member {
    fn write(writer: &mut dyn Write, name: &str, value: Value<'_>) -> fmt::Result;
}

/// `,"name":value`
struct JsonMember;

/// ` name=value`, the message without its name.
struct TextMember;

/// Writes fields, one after the other, up to the first that cannot be written.
struct Members<'w, M> {
    writer: &'w mut dyn Write,
    is_span: bool,
    result: fmt::Result,
    member: PhantomData<M>,
}

impl<'w, M: Member> Members<'w, M> {
    fn of_event(writer: &'w mut dyn Write) -> Self {
        Self {
            writer,
            is_span: false,
            result: Ok(()),
            member: PhantomData,
        }
    }

    fn of_span(writer: &'w mut dyn Write, fields: &impl RecordFields) -> fmt::Result {
        let mut members = Self {
            is_span: true,
            ..Self::of_event(writer)
        };
        fields.record(&mut members);
        members.result
    }

    fn push(&mut self, name: &str, value: Value<'_>) {
        if self.result.is_ok() && !(self.is_span && name.contains('.')) {
            self.result = M::write(self.writer, name, value);
        }
    }
}

impl Member for JsonMember {
    fn write(writer: &mut dyn Write, name: &str, value: Value<'_>) -> fmt::Result {
        writer.write_char(',')?;
        write_json(writer, name)?;
        writer.write_char(':')?;
        write_json(writer, &value)
    }
}

impl Member for TextMember {
    fn write(writer: &mut dyn Write, name: &str, value: Value<'_>) -> fmt::Result {
        let text = match value {
            Value::Text(text) => return write_text(writer, name, text),
            Value::Float(value) => format!("{value:.3}"),
            Value::Integer(value) => value.to_string(),
            Value::Natural(value) => value.to_string(),
            Value::Large(value) => value.to_string(),
            Value::Flag(value) => value.to_string(),
        };
        write_text(writer, name, &text)
    }
}

/// A line stays a line, and a value is told from the next name.
fn write_text(writer: &mut dyn Write, name: &str, value: &str) -> fmt::Result {
    let is_plain = |c: char| !c.is_control() && c != '"';
    let is_message = name == "message";
    if is_message && value.chars().all(|c| !c.is_control()) {
        write!(writer, " {value}")
    } else if is_message {
        write!(writer, " {}", value.escape_debug())
    } else if !value.is_empty() && value.chars().all(|c| is_plain(c) && c != ' ') {
        write!(writer, " {name}={value}")
    } else {
        write!(writer, " {name}={value:?}")
    }
}

impl<M: Member> Visit for Members<'_, M> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), Value::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), Value::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), Value::Natural(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.push(field.name(), Value::Large(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), Value::Flag(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), Value::Text(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.push(field.name(), Value::Text(&chain(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field.name(), Value::Text(&format!("{value:?}")));
    }
}

fn write_json(writer: &mut dyn Write, value: &(impl Serialize + ?Sized)) -> fmt::Result {
    serde_json::to_writer(Utf8(writer), value).map_err(|_| fmt::Error)
}

/// Takes the bytes of a serializer, which come as whole characters.
struct Utf8<'w>(&'w mut dyn Write);

impl io::Write for Utf8<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Events of watches: one JSON object for each, in lines or as server-sent events.

use serde::Serialize;
use serde_json::Value;

use super::fields::Fields;
use super::views::Views;
use hyperfleet_domain::StoredResource;
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::watch::WatchEventKind;
use hyperfleet_server_kit::http::weight;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventForm {
    /// A line for each: `application/x-ndjson`.
    Lines,
    /// Server-sent events: `text/event-stream`, with the position as `id`.
    Stream,
}

/// Writes the events of one watch.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    pub views: Views<'a>,
    pub form: EventForm,
    /// The selected members of resources; unset for all.
    pub fields: Option<&'a Fields>,
}

/// An event. Members are in alphabetical order, as in every answer.
#[derive(Serialize)]
struct EventView<T> {
    /// The tag of the resource, as in `ETag`.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    r#type: &'static str,
}

impl EventForm {
    pub const LINES_TYPE: &str = "application/x-ndjson";
    pub const STREAM_TYPE: &str = "text/event-stream";

    /// The form that an `Accept` header asks for: lines, unless it names server-sent events, with a weight that is not
    /// below the weight of lines (RFC 9110, section 12.5.1).
    pub fn accepted(accept: Option<&str>) -> Self {
        let weight_of = |name: &str| {
            let named = accept.unwrap_or_default().split(',').filter_map(|entry| {
                let (media, parameters) = entry.split_once(';').unwrap_or((entry, ""));
                let is_named = media.trim().eq_ignore_ascii_case(name);
                is_named.then(|| weight(parameters))
            });
            named.fold(0.0, f32::max)
        };
        let stream = weight_of(Self::STREAM_TYPE);
        if stream > 0.0 && stream >= weight_of(Self::LINES_TYPE) {
            Self::Stream
        } else {
            Self::Lines
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Lines => Self::LINES_TYPE,
            Self::Stream => Self::STREAM_TYPE,
        }
    }

    fn text<T: Serialize>(self, event: &EventView<T>) -> Option<String> {
        let body = serde_json::to_string(event).ok()?;
        Some(match self {
            Self::Lines => body + "\n",
            Self::Stream => {
                let id = event.position.as_ref();
                let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
                format!("event: {}\n{id}data: {body}\n\n", event.r#type)
            }
        })
    }
}

impl Events<'_> {
    /// A change; without a position if the client cannot continue there. `None` if it cannot be written.
    pub fn change(
        self,
        kind: WatchEventKind,
        resource: &StoredResource,
        position: Option<ChangePosition>,
    ) -> Option<String> {
        let (etag, r#type) = (Some(resource.tag().to_string()), kind.into_str());
        let position = position.map(|position| position.to_string());
        match self.fields {
            None => self.form.text(&EventView {
                etag,
                object: Some(self.views.resource(resource)),
                position,
                r#type,
            }),
            Some(fields) => self.form.text(&EventView {
                etag,
                object: Some(self.views.sparse(resource, fields)),
                position,
                r#type,
            }),
        }
    }

    /// Nothing but a position: everything before it was sent.
    pub fn bookmark(self, position: ChangePosition) -> Option<String> {
        self.form.text(&EventView::<()> {
            etag: None,
            object: None,
            position: Some(position.to_string()),
            r#type: "BOOKMARK",
        })
    }

    /// The last event of a watch that the service ends, with the problem.
    pub fn error(self, problem: Value) -> Option<String> {
        self.form.text(&EventView {
            etag: None,
            object: Some(problem),
            position: None,
            r#type: "ERROR",
        })
    }

    /// Something that is no event, for a client that waits while there is no position to name.
    pub fn nothing(self) -> &'static str {
        match self.form {
            EventForm::Lines => "\n",
            EventForm::Stream => ": alive\n\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use hyperfleet_domain::entity_config::{built_in, registry};

    #[test]
    fn the_form_is_the_one_that_is_accepted() {
        for (accept, form) in [
            (None, EventForm::Lines),
            (Some("*/*"), EventForm::Lines),
            (Some("application/x-ndjson"), EventForm::Lines),
            (Some("text/event-stream"), EventForm::Stream),
            (
                Some("application/json, Text/Event-Stream;q=0.9"),
                EventForm::Stream,
            ),
            (Some("text/event-stream;q=0"), EventForm::Lines),
            (
                Some("application/x-ndjson, text/event-stream;q=0.1"),
                EventForm::Lines,
            ),
            (
                Some("application/x-ndjson;q=0.1, text/event-stream"),
                EventForm::Stream,
            ),
            (
                Some("application/x-ndjson, text/event-stream"),
                EventForm::Stream,
            ),
        ] {
            assert_eq!(EventForm::accepted(accept), form, "{accept:?}");
        }
    }

    #[test]
    fn events_without_a_resource_are_one_line_or_one_block() {
        let registry = registry(&built_in()).unwrap();
        let events = |form| Events {
            views: Views(&registry),
            form,
            fields: None,
        };
        let position = ChangePosition { era: 0, number: 7 };
        let (lines, stream) = (events(EventForm::Lines), events(EventForm::Stream));
        let line = r#"{"position":"0-7","type":"BOOKMARK"}"#;
        assert_eq!(lines.bookmark(position), Some(format!("{line}\n")));
        let block = format!("event: BOOKMARK\nid: 0-7\ndata: {line}\n\n");
        assert_eq!(stream.bookmark(position), Some(block));
        let line = r#"{"object":{"status":410},"type":"ERROR"}"#;
        let block = format!("event: ERROR\ndata: {line}\n\n");
        assert_eq!(stream.error(json!({"status": 410})), Some(block));
    }
}

//! Changes as server-sent events (the HTML standard, section 9.2), for `?watch=true`.
//!
//! ```text
//! retry: 1000                         time before a reconnect, in milliseconds
//!
//! event: put                          an item that exists or has changed data: {"name":"web.service",…}
//!
//! event: listed                       the initial list is complete data: {"revision":7} id: 7
//!
//! event: delete                       an item that was deleted
//! data: {"name":"web.service"}
//! id: 9
//! ```
//!
//! `id` is a revision up to which everything was sent. Only the last event of a revision has it, so a client
//! that is cut off earlier receives all of them again.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

pub const EVENT_STREAM: &str = "text/event-stream";

/// After this time without an event a server sends a [`heartbeat`]. Proxies close streams that are silent for a
/// minute.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// The start of a stream, which sets a reconnect time of one second.
pub fn beginning() -> &'static str {
    "retry: 1000\n\n"
}

/// A comment, which clients ignore. It shows proxies that the connection lives.
pub fn heartbeat() -> &'static str {
    ": alive\n\n"
}

/// An existing item.
///
/// # Errors
/// None for types whose map keys are strings.
pub fn put(item: &impl Serialize, id: Option<i64>) -> serde_json::Result<String> {
    event("put", item, id)
}

/// A deleted item.
///
/// # Errors
/// None for types whose map keys are strings.
pub fn delete(item: &impl Serialize, id: Option<i64>) -> serde_json::Result<String> {
    event("delete", item, id)
}

/// The list of a revision is complete.
pub fn listed(revision: i64) -> String {
    format!("event: listed\ndata: {{\"revision\":{revision}}}\nid: {revision}\n\n")
}

/// An entry of a journal, as one line of JSON; `id` is the position after it.
pub fn entry(json: &str, id: &str) -> String {
    format!("event: entry\ndata: {json}\nid: {id}\n\n")
}

/// The position before the first entry of a journal.
pub fn position(id: &impl Display) -> String {
    format!("event: position\ndata: {{}}\nid: {id}\n\n")
}

fn event(name: &str, item: &impl Serialize, id: Option<i64>) -> serde_json::Result<String> {
    // One copy, because it may be large. JSON has newlines only in its texts, where they are escaped.
    let mut event = format!("event: {name}\ndata: ").into_bytes();
    serde_json::to_writer(&mut event, item)?;
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    event.extend(format!("\n{id}\n").bytes());
    Ok(String::from_utf8(event).expect("JSON is UTF-8"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_block_whatever_its_texts_hold() {
        let item = json!({"name": "a\r\nid: 9\n\nb"});
        let text = put(&item, Some(7)).unwrap();
        assert_eq!(
            text,
            "event: put\ndata: {\"name\":\"a\\r\\nid: 9\\n\\nb\"}\nid: 7\n\n"
        );
        let text = delete(&json!({"name": "a"}), None).unwrap();
        assert_eq!(text, "event: delete\ndata: {\"name\":\"a\"}\n\n");
        assert_eq!(
            entry("{}", "s=1;i=2") + &position(&"start"),
            "event: entry\ndata: {}\nid: s=1;i=2\n\nevent: position\ndata: {}\nid: start\n\n"
        );
        assert_eq!(
            listed(7),
            "event: listed\ndata: {\"revision\":7}\nid: 7\n\n"
        );
    }
}

//! Events of a watch, read from bytes as they arrive.

use serde::Deserialize;
use serde_json::Value;

use super::{Change, WatchEnd};
use crate::error::Error;
use crate::resource::Resource;

/// Longest event, in bytes. With [`FIELDS`](super::FIELDS) an event has a few kilobytes at most.
const EVENT_BYTES_MAX: usize = 256 * 1024;

/// What has arrived, and was not taken yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
    position: Option<String>,
    /// The end that the service has announced, after the changes before it.
    end: Option<WatchEnd>,
}

/// A line.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    #[serde(default)]
    object: Value,
    position: Option<String>,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Every change up to here was taken. `None` before the first event.
    pub(super) fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Takes the changes that have arrived as whole lines; `None` if there is no whole line.
    ///
    /// # Errors
    /// The service has ended the watch, a line is too long, or it is no event.
    pub(super) fn take(&mut self) -> Result<Option<Vec<Change>>, WatchEnd> {
        if let Some(end) = self.end.take() {
            return Err(end);
        }
        let Some(end) = self.bytes.iter().rposition(|byte| *byte == b'\n') else {
            if self.bytes.len() <= EVENT_BYTES_MAX {
                return Ok(None);
            }
            let fault = format!("an event has more than {EVENT_BYTES_MAX} bytes");
            return Err(Error::Unreadable(fault).into());
        };
        let rest = self.bytes.split_off(end + 1);
        let lines = std::mem::replace(&mut self.bytes, rest);
        let mut changes = Vec::new();
        for line in lines.split(|byte| *byte == b'\n') {
            // An empty line only shows that the service is alive.
            if !line.is_empty() && self.end.is_none() {
                let change = self.read(line);
                let change = change.map_err(|error| Error::Unreadable(error.to_string()))?;
                changes.extend(change);
            }
        }
        match self.end.take_if(|_| changes.is_empty()) {
            Some(end) => Err(end),
            None => Ok(Some(changes)),
        }
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Change>, serde_json::Error> {
        let event: Event = serde_json::from_slice(line)?;
        let change = match event.r#type.as_str() {
            "ADDED" | "MODIFIED" => Some(Change::Seen(Resource::read(event.object)?)),
            "DELETED" => Some(Change::Removed(Resource::read(event.object)?.href)),
            "ERROR" => {
                self.end = Some(WatchEnd::of_event(&event.object));
                None
            }
            // A bookmark, or an event of a later version.
            _ => None,
        };
        if event.position.is_some() {
            self.position = event.position;
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, name: &str, position: &str) -> String {
        let object = json!({
            "id": name, "kind": "Cart", "name": name, "href": format!("/carts/{name}"), "generation": 2,
        });
        let event = json!({"type": kind, "object": object, "position": position});
        format!("{event}\n")
    }

    fn brief(change: &Change) -> String {
        match change {
            Change::Seen(resource) => format!("{} {}", resource.href, resource.generation),
            Change::Removed(href) => format!("{href} removed"),
        }
    }

    #[test]
    fn changes_are_whole_however_they_arrive() {
        let bookmark = "{\"type\":\"BOOKMARK\",\"position\":\"0-4\"}\n\n".to_owned();
        let later = "{\"type\":\"LATER\"}\n".to_owned();
        let text = [
            event("ADDED", "a", "0-1"),
            event("MODIFIED", "b", "0-2"),
            later,
            event("DELETED", "a", "0-3"),
            bookmark,
            "{\"ty".to_owned(),
        ];
        let text = text.concat();
        for size in 1..=text.len() {
            let (mut events, mut seen) = (Events::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                events.push(piece);
                while let Some(changes) = events.take().unwrap() {
                    seen.extend(changes.iter().map(brief));
                }
            }
            let expected = ["/carts/a 2", "/carts/b 2", "/carts/a removed"];
            assert_eq!(seen, expected, "pieces of {size}");
            assert_eq!(events.position(), Some("0-4"), "pieces of {size}");
        }
    }

    #[test]
    fn the_changes_before_the_end_are_not_lost() {
        let problem = |code: &str| {
            let object = json!({"code": code, "detail": "so it is", "status": 401});
            format!("{}\n", json!({"type": "ERROR", "object": object}))
        };
        let mut events = Events::default();
        events.push((event("ADDED", "a", "0-1") + &problem("HYPERFLEET-AUT-003")).as_bytes());
        assert_eq!(events.take().unwrap().unwrap().len(), 1);
        let end = events.take().unwrap_err().to_string();
        let expected = "the API cannot serve now: HYPERFLEET-AUT-003 so it is";
        assert_eq!((end.as_str(), events.position()), (expected, Some("0-1")));
        events.push(problem(super::super::POSITION_GONE).as_bytes());
        let end = events.take().unwrap_err();
        assert!(matches!(end, WatchEnd::PositionGone), "{end}");
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let too_long = "an event has more than 262144 bytes";
        for (text, expected) in [
            ("x".repeat(EVENT_BYTES_MAX + 1), too_long),
            ("{}\n".to_owned(), "missing field `type`"),
            ("{\"type\":\"ADDED\"}\n".to_owned(), "invalid type: null"),
        ] {
            let mut events = Events::default();
            events.push(&text.as_bytes()[..text.len() - 1]);
            assert!(events.take().unwrap().is_none());
            events.push(&text.as_bytes()[text.len() - 1..]);
            let fault = events.take().unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}

//! Server-sent events (the HTML standard, section 9.2), the responses to `?watch=true`.

use std::time::Duration;

use serde_json::Value;

use super::Error;
use super::transport::Text;

const EVENT_MAX: usize = 16 << 20;

/// The server sends a comment every 15 s: a stream that is silent for longer is broken.
const SILENCE_MAX: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// `put`, `delete` or `listed`; of a journal `entry` or `position`.
    pub name: String,
    pub data: Value,
    /// Where another stream resumes after this event: a revision, or a position in a journal.
    pub id: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Events {
    text: Text,
    buffer: Vec<u8>,
}

impl Events {
    /// The events of a response with an end.
    pub(super) fn of(text: Text) -> Self {
        Self {
            text,
            buffer: Vec::new(),
        }
    }

    /// Those of a response that continues.
    pub(super) fn watched(text: Text) -> Self {
        Self::of(text.with_timeout(SILENCE_MAX))
    }

    /// The next event; `None` when the server ended the stream.
    ///
    /// # Errors
    /// The connection broke, the server fell silent, or it sent something else.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(block) = take_block(&mut self.buffer) {
                if let Some(event) = parsed(&block) {
                    return Ok(Some(event));
                }
            }
            if self.buffer.len() > EVENT_MAX {
                return Err(self.text.unreadable("an event is too long"));
            }
            match self.text.next().await? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(self.text.unreadable("it ends within an event")),
            }
        }
    }
}

/// Lines up to the next empty one, if it was read already.
fn take_block(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let block: Vec<u8> = buffer.drain(..end + 2).collect();
    Some(String::from_utf8_lossy(&block).into_owned())
}

/// The event of a block; `None` for comments and settings.
fn parsed(block: &str) -> Option<Event> {
    let (mut name, mut data, mut id) = (None, String::new(), None);
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "data" => data.push_str(value),
            "id" => id = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(Event {
        name: name?,
        data: serde_json::from_str(&data).ok()?,
        id,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_are_events_and_comments_are_none() {
        let mut buffer =
            b"retry: 1000\n\n: alive\n\nevent: put\ndata: {\"name\":\"a\"}\nid: 7\n\nevent: li"
                .to_vec();
        let mut events = Vec::new();
        while let Some(block) = take_block(&mut buffer) {
            events.extend(parsed(&block));
        }
        let expected = Event {
            name: "put".to_owned(),
            data: json!({"name": "a"}),
            id: Some("7".to_owned()),
        };
        assert_eq!(events, [expected]);
        assert_eq!(buffer, b"event: li");
    }
}

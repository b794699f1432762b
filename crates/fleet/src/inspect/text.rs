//! A text that arrives in pieces, from a program or from another machine.

use std::io;

use super::events::JournalEvents;

/// A text of unknown length. Dropping it kills its program or closes its connection.
#[derive(Debug)]
pub struct TextStream(Source);

#[derive(Debug)]
enum Source {
    Whole(Option<Vec<u8>>),
    Peer(reqwest::Response),
    Journal(Box<JournalEvents>),
}

impl TextStream {
    pub(super) fn whole(text: Vec<u8>) -> Self {
        Self(Source::Whole(Some(text)))
    }

    pub(super) fn of_peer(response: reqwest::Response) -> Self {
        Self(Source::Peer(response))
    }

    pub(super) fn of_journal(events: JournalEvents) -> Self {
        Self(Source::Journal(Box::new(events)))
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The program's output, or the connection to the other machine, has failed.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        match &mut self.0 {
            Source::Whole(text) => Ok(text.take()),
            Source::Peer(response) => {
                let piece = response.chunk().await.map_err(io::Error::other)?;
                Ok(piece.map(Vec::from))
            }
            Source::Journal(events) => events.next().await.map_err(io::Error::other),
        }
    }
}

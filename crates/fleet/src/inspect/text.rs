//! A text that arrives in pieces, from a program or from another machine.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::events::JournalEvents;

/// Largest piece of a program's output, in bytes.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// A text of unknown length. Dropping it kills its program or closes its connection.
#[derive(Debug)]
pub struct TextStream(Source);

#[derive(Debug)]
enum Source {
    Whole(Option<Vec<u8>>),
    Program {
        output: pipe::Receiver,
        /// Kept to kill the program on drop.
        _child: Child,
    },
    Peer(reqwest::Response),
    Journal(Box<JournalEvents>),
}

impl TextStream {
    pub(super) fn whole(text: Vec<u8>) -> Self {
        Self(Source::Whole(Some(text)))
    }

    pub(super) fn of_program(output: pipe::Receiver, child: Child) -> Self {
        Self(Source::Program {
            output,
            _child: child,
        })
    }

    pub(super) fn of_peer(response: reqwest::Response) -> Self {
        Self(Source::Peer(response))
    }

    pub(super) fn of_journal(events: JournalEvents) -> Self {
        Self(Source::Journal(Box::new(events)))
    }

    /// The next piece; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// The program's output, or the connection to the other machine, has failed.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        match &mut self.0 {
            Source::Whole(text) => Ok(text.take()),
            Source::Program { output, .. } => {
                let mut piece = Vec::with_capacity(PIECE_BYTES);
                let length = output.read_buf(&mut piece).await?;
                Ok((length > 0).then_some(piece))
            }
            Source::Peer(response) => {
                let piece = response.chunk().await.map_err(io::Error::other)?;
                Ok(piece.map(Vec::from))
            }
            Source::Journal(events) => events.next().await.map(Some).map_err(io::Error::other),
        }
    }
}

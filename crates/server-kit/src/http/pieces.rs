//! Bodies in pieces: written in pieces, so that a large body never needs one large buffer, and passed to the connection
//! in pieces, which shows whether the client still reads.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use super::memory::Reservation;

/// Size of the pieces of a large response. The next piece is passed on when the previous one has been sent.
pub const PIECE: usize = 64 * 1024;

/// A response body in pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    rest: VecDeque<Bytes>,
    /// Bytes of the remaining pieces.
    bytes: usize,
    /// Memory that is held until the last piece was taken.
    pub(super) reservation: Option<Reservation>,
}

/// Collects what is written, in pieces of [`PIECE`] bytes; the last one may be shorter.
///
/// A single growing buffer would allocate new memory for the entire body. Memory that is freed while values are written
/// can hold the next piece, but seldom the entire body.
#[derive(Debug)]
pub(super) struct PieceWriter {
    full: VecDeque<Bytes>,
    last: Vec<u8>,
}

impl Pieces {
    /// Of bytes that are in memory anyway.
    pub(super) fn of(mut bytes: Bytes) -> Self {
        let length = bytes.len();
        let mut rest = VecDeque::new();
        while !bytes.is_empty() {
            rest.push_back(bytes.split_to(bytes.len().min(PIECE)));
        }
        Self {
            rest,
            bytes: length,
            reservation: None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl PieceWriter {
    /// `length`: about how many bytes will be written.
    pub(super) fn new(length: usize) -> Self {
        Self {
            full: VecDeque::new(),
            last: Vec::with_capacity(length.min(PIECE)),
        }
    }

    pub(super) fn finish(self) -> Pieces {
        let Self { mut full, last } = self;
        let bytes = full.iter().map(Bytes::len).sum::<usize>() + last.len();
        if !last.is_empty() {
            full.push_back(last.into());
        }
        Pieces {
            rest: full,
            bytes,
            reservation: None,
        }
    }
}

impl io::Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() == PIECE {
            let next = Vec::with_capacity(PIECE);
            let full = std::mem::replace(&mut self.last, next);
            self.full.push_back(full.into());
        }
        let written = bytes.len().min(PIECE - self.last.len());
        self.last.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    #[inline]
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MessageBody for Pieces {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes.try_into().unwrap_or(u64::MAX))
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let pieces = self.get_mut();
        let piece = pieces.rest.pop_front();
        pieces.bytes -= piece.as_ref().map_or(0, Bytes::len);
        Poll::Ready(piece.map(Ok))
    }

    /// A body of one piece needs no stream: nothing is copied to compress it or to send it.
    fn try_into_bytes(mut self) -> Result<Bytes, Self> {
        match self.rest.len() {
            0 => Ok(Bytes::new()),
            1 if self.reservation.is_none() => Ok(self.rest.pop_front().unwrap_or_default()),
            _ => Err(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::task::Waker;

    use super::*;

    fn taken(mut pieces: Pieces) -> Vec<Bytes> {
        let mut context = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(Ok(piece))) = Pin::new(&mut pieces).poll_next(&mut context) {
            all.push(piece);
        }
        assert_eq!(pieces.bytes(), 0);
        all
    }

    #[test]
    fn what_is_written_arrives_in_order_and_in_pieces() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let text: Vec<u8> = (0..=250).cycle().take(length).collect();
            for step in [1000, PIECE, 2 * PIECE + 1] {
                let mut writer = PieceWriter::new(100);
                for part in text.chunks(step) {
                    writer.write_all(part).unwrap();
                }
                let pieces = writer.finish();
                assert_eq!(pieces.size(), BodySize::Sized(length as u64));
                let pieces = taken(pieces);
                assert!(pieces.iter().rev().skip(1).all(|p| p.len() == PIECE));
                assert_eq!(pieces.concat(), text);
            }
            let pieces = taken(Pieces::of(Bytes::from(text.clone())));
            assert_eq!(pieces.len(), length.div_ceil(PIECE));
            assert_eq!(pieces.concat(), text);
        }
    }
}

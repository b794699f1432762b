//! Shortens long texts by leaving out their middle.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes that are kept at the end of a shortened text.
const TAIL_BYTES: usize = 1 << 10;

/// Reads the output of a program. The middle of an output longer than `limit` is left out.
pub(super) async fn read_limited(
    mut output: impl AsyncRead + Unpin,
    limit: u64,
) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    (&mut output).take(limit).read_to_end(&mut text).await?;
    let (mut tail, mut left_out) = (Vec::new(), 0);
    while output.read_buf(&mut tail).await? > 0 {
        let extra = tail.len().saturating_sub(TAIL_BYTES);
        left_out += extra;
        tail.drain(..extra);
    }
    if left_out > 0 {
        text.extend(format!("\n[{left_out} bytes left out]\n").bytes());
    }
    text.extend(tail);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_text_keeps_its_beginning_and_its_end() {
        let text = format!("{}\nend\n", "x".repeat(3 * TAIL_BYTES));
        let read = read_limited(text.as_bytes(), 1 << 20).await.unwrap();
        assert_eq!(read, text.as_bytes());
        let read = read_limited(text.as_bytes(), 10).await.unwrap();
        let left_out = text.len() - 10 - TAIL_BYTES;
        let begin = format!("xxxxxxxxxx\n[{left_out} bytes left out]\nxxx");
        assert!(read.starts_with(begin.as_bytes()) && read.ends_with(b"x\nend\n"));
    }
}

//! Reads files up to a maximum size.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The content of a file.
///
/// # Errors
/// It cannot be read, or has more than `bytes_max` bytes, of which no more are read.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = File::open(path)?
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if count as u64 > bytes_max {
        let error = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

/// The content of a text file.
///
/// # Errors
/// As [`read`], or it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, bytes_max)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_may_be() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(read_text(file.path(), 5).unwrap(), "12345");
        let error = read(file.path(), 4).unwrap_err().to_string();
        assert_eq!(error, "it has more than 4 bytes");
        // It never ends.
        assert!(read(Path::new("/dev/zero"), 4).is_err());
        std::fs::write(file.path(), [0xff]).unwrap();
        assert_eq!(read(file.path(), 4).unwrap(), [0xff]);
        let error = read_text(file.path(), 4).unwrap_err().to_string();
        assert_eq!(error, "it is no UTF-8");
    }
}

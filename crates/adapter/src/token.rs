//! Authentication of the adapter.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Longest token that is read from a file, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

#[derive(Clone)]
pub enum Token {
    /// For services without authentication.
    None,
    /// A fixed token.
    Text(String),
    /// The content of a file at the time of a request, such as a token of a Kubernetes service account, which
    /// is renewed in place.
    File(PathBuf),
}

impl Token {
    /// The current token.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) async fn current(&self) -> io::Result<Option<String>> {
        match self {
            Self::None => Ok(None),
            Self::Text(token) => Ok(Some(token.clone())),
            Self::File(path) => {
                let path = path.clone();
                // The file is small and cached: reading it is cheaper than detecting changes.
                let read = tokio::task::spawn_blocking(move || read(&path));
                let text = read.await.map_err(io::Error::other)??;
                Ok(Some(text.trim().to_owned()))
            }
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let limit = TOKEN_BYTES_MAX + 1;
    let count = File::open(path)?.take(limit).read_to_string(&mut text)?;
    if count as u64 == limit {
        let fault = format!("it has more than {TOKEN_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, fault));
    }
    Ok(text)
}

/// Never prints the token itself.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Text(_) => f.write_str("Text"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::File(path.clone());
        assert!(token.current().await.is_err());
        for text in ["one", "two"] {
            std::fs::write(&path, format!("{text}\n")).unwrap();
            assert_eq!(token.current().await.unwrap().as_deref(), Some(text));
        }
    }

    #[tokio::test]
    async fn a_file_without_end_is_refused() {
        let token = Token::File("/dev/zero".into());
        let fault = token.current().await.unwrap_err().to_string();
        assert_eq!(fault, "it has more than 65536 bytes");
    }

    #[test]
    fn a_token_is_not_printed() {
        let printed = format!("{:?}", Token::Text("secret".to_owned()));
        assert_eq!(printed, "Text");
    }
}

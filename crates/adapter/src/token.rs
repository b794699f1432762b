//! How the adapter says who it is.

use std::fmt;
use std::path::PathBuf;

/// How the adapter says who it is.
#[derive(Clone)]
pub enum Token {
    /// It does not: for services without authentication.
    None,
    /// The same token for ever.
    Text(String),
    /// What stands in a file when a request is made, such as a token of a Kubernetes service account, which is renewed in
    /// its place.
    File(PathBuf),
}

impl Token {
    /// The token of now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) async fn current(&self) -> std::io::Result<Option<String>> {
        match self {
            Self::None => Ok(None),
            Self::Text(token) => Ok(Some(token.clone())),
            Self::File(path) => {
                let path = path.clone();
                // Some hundred bytes, from memory: cheaper than to find out whether they have changed.
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path));
                let text = read.await.map_err(std::io::Error::other)??;
                Ok(Some(text.trim().to_owned()))
            }
        }
    }
}

/// Never the token itself.
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

    #[test]
    fn a_token_is_not_printed() {
        let printed = format!("{:?}", Token::Text("secret".to_owned()));
        assert_eq!(printed, "Text");
    }
}

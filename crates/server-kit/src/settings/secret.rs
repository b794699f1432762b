//! Texts that are shown nowhere.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// What stands for a secret.
pub const REDACTED: &str = "***REDACTED***";

/// A text that neither `Debug` nor `Serialize` shows: whoever prints settings, or sends them
/// somewhere, gets [`REDACTED`] in its place, or an empty text for an empty one.
///
/// So defaults, which are serialized to be layered with the other sources, cannot hold one.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for whom it is meant.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { REDACTED }
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

//! Texts that must not appear in output.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

pub const REDACTED: &str = "***REDACTED***";

/// A text that neither `Debug` nor `Serialize` shows: printed or sent settings have [`REDACTED`] in its place,
/// or an empty text for an empty one.
///
/// So defaults, which are serialized to be merged with other sources, cannot contain one.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn redacted(&self) -> &'static str {
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
        fmt::Debug::fmt(self.redacted(), f)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.redacted())
    }
}

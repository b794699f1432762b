use serde::{Deserialize, Serialize};

use crate::auth::IssuerConfig;

/// Who may call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jwt {
    /// Whether callers must present a token.
    pub enabled: bool,
    /// Whose tokens are taken, in the order in which they are tried.
    pub configs: Vec<IssuerConfig>,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            enabled: true,
            configs: Vec::new(),
        }
    }
}

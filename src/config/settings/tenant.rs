use serde::{Deserialize, Serialize};

/// On whose behalf callers act (domain rule 7).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tenant {
    /// Whether requests must say so.
    pub enabled: bool,
    /// Whether callers see and change only what is theirs.
    pub enforce: bool,
    /// Header that marks system identities by saying `true`.
    pub system_header: String,
    /// What a tenant consists of.
    pub dimensions: Vec<Dimension>,
}

/// One part of what a tenant consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dimension {
    /// Header that carries it.
    pub header: String,
    /// What it is called in `tenancy`.
    pub key: String,
    /// Whether every caller must say it.
    pub required: bool,
}

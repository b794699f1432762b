//! The configured registry of kinds, and its checks at the start. All errors are reported together, each with what to
//! change.

mod checks;
mod schemas;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ResourceName;
use super::condition_rules::{KindRules, Paths, Rule, RuleConfig};
use super::entity::{DeletePolicy, Entity, EntityRegistry, ReferenceRule};
pub use schemas::{Attached, attach};

/// Plurals that routes of the service itself use.
pub const PLURALS_RESERVED: [&str; 6] = [
    "resources",
    "audit",
    "fleet",
    "leases",
    "openapi",
    "openapi.html",
];
/// Longest kind and plural, in bytes.
pub const KIND_BYTES_MAX: usize = 100;

/// One entry of the configuration's `entities` list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EntityConfig {
    /// `PascalCase`.
    pub kind: String,
    /// The path segment.
    pub plural: String,
    /// The kind that owns it; empty for none.
    pub parent_kind: String,
    pub on_parent_delete: DeletePolicy,
    /// Component of the schema document that its specs must fit.
    pub spec_schema_name: String,
    /// Whether a schema document without that component is an error.
    pub require_spec_schema: bool,
    pub required_adapters: Vec<String>,
    /// Shortest name, in bytes; 0 for no limit of its own.
    pub name_min_len: usize,
    /// Longest name, in bytes; 0 for 100.
    pub name_max_len: usize,
    pub references: Vec<ReferenceConfig>,
    /// Rules for further conditions.
    pub conditions: Vec<RuleConfig>,
}

/// One entry of a kind's `references` list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReferenceConfig {
    pub ref_type: String,
    pub target_kind: String,
    pub min: usize,
    /// Most targets; 0 for no limit.
    pub max: usize,
}

/// The errors of the configured kinds. One sentence each, which begins with the setting and says how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidEntities(pub Vec<String>);

/// The kinds of a service without configured ones: clusters and their node pools.
pub fn built_in() -> Vec<EntityConfig> {
    let adapters = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    vec![
        EntityConfig {
            kind: "Cluster".to_owned(),
            plural: "clusters".to_owned(),
            spec_schema_name: "ClusterSpec".to_owned(),
            required_adapters: adapters(&["validation", "dns", "pullsecret", "hypershift"]),
            name_min_len: 3,
            name_max_len: 53,
            ..EntityConfig::default()
        },
        EntityConfig {
            kind: "NodePool".to_owned(),
            plural: "nodepools".to_owned(),
            parent_kind: "Cluster".to_owned(),
            on_parent_delete: DeletePolicy::Cascade,
            spec_schema_name: "NodePoolSpec".to_owned(),
            required_adapters: adapters(&["validation", "hypershift"]),
            name_min_len: 3,
            name_max_len: 15,
            ..EntityConfig::default()
        },
    ]
}

/// Checks the configured kinds, each by itself and all against each other.
///
/// # Errors
///
/// Every error, in the order of the configuration.
pub fn registry(configs: &[EntityConfig]) -> Result<EntityRegistry, InvalidEntities> {
    let rules = checks::check(configs).map_err(InvalidEntities)?;
    let made = configs.iter().zip(rules);
    let made = made.map(|(config, rules)| entity(config, configs, rules));
    Ok(EntityRegistry::new(made.collect()))
}

fn entity(config: &EntityConfig, configs: &[EntityConfig], rules: Vec<Rule>) -> Entity {
    let references = config.references.iter().map(|rule| ReferenceRule {
        ref_type: rule.ref_type.clone(),
        target_kind: rule.target_kind.clone(),
        min: rule.min,
        max: rule.max,
    });
    let parent = configs.iter().find(|c| c.kind == config.parent_kind);
    let paths = Paths {
        plural: config.plural.clone(),
        parent: parent.map(|p| (p.kind.clone(), p.plural.clone())),
    };
    Entity {
        kind: config.kind.clone(),
        plural: config.plural.clone(),
        parent: Some(config.parent_kind.clone()).filter(|p| !p.is_empty()),
        on_parent_delete: config.on_parent_delete,
        required_adapters: config.required_adapters.clone(),
        name_bytes_min: config.name_min_len,
        name_bytes_max: match config.name_max_len {
            0 => ResourceName::BYTES_MAX,
            most => most.min(ResourceName::BYTES_MAX),
        },
        references: references.collect(),
        // The document with the schemas is another source: see [`attach`].
        spec_schema: None,
        rules: (!rules.is_empty()).then(|| Arc::new(KindRules::new(rules, paths))),
    }
}

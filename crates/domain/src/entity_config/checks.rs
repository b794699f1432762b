//! Checks every configured kind at the start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::{EntityConfig, KIND_BYTES_MAX, PLURALS_RESERVED};
use crate::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use crate::condition_rules::{self, Rule};

/// Path segments below every resource, beside the plurals of child kinds.
const SUFFIXES: [&str; 5] = ["events", "explain", "force-delete", "history", "statuses"];

/// Checks every kind; returns the rules of each.
///
/// # Errors
///
/// Every error, in the order of the configuration.
pub(super) fn check(configs: &[EntityConfig]) -> Result<Vec<Vec<Rule>>, Vec<String>> {
    let adapters = configs.iter().flat_map(|c| &c.required_adapters);
    let reserved = adapters.map(|a| adapter_condition_type(a)).collect();
    let (mut errors, mut rules) = (Vec::new(), Vec::new());
    for (index, config) in configs.iter().enumerate() {
        let mut check = Check {
            configs,
            config,
            index,
            errors: &mut errors,
        };
        check.names();
        check.adapters();
        check.parent();
        check.references();
        rules.push(check.conditions(&reserved));
    }
    if errors.is_empty() {
        Ok(rules)
    } else {
        Err(errors)
    }
}

/// An error of a kind. It begins with the setting: the member of the kind, or the kind itself.
pub(super) fn error_of(
    (index, config): (usize, &EntityConfig),
    member: &str,
    text: impl Display,
) -> String {
    let member = if member.is_empty() {
        String::new()
    } else {
        format!(".{member}")
    };
    let kind = match &*config.kind {
        "" => "the entity".to_owned(),
        kind => format!("entity kind \"{kind}\""),
    };
    format!("entities[{index}]{member}: {kind} {text}")
}

struct Check<'a> {
    configs: &'a [EntityConfig],
    config: &'a EntityConfig,
    index: usize,
    errors: &'a mut Vec<String>,
}

impl Check<'_> {
    fn error(&mut self, member: &str, text: impl Display) {
        let entity = (self.index, self.config);
        self.errors.push(error_of(entity, member, text));
    }

    fn names(&mut self) {
        let EntityConfig { kind, plural, .. } = self.config;
        let before = &self.configs[..self.index];
        if kind.is_empty() {
            self.error(
                "kind",
                "has no kind: set `kind`, for instance to \"Cluster\"",
            );
        } else if !is_identifier(kind) {
            self.error("kind", format!(
                "is not a usable name: give a letter followed by letters, digits, - or _, {KIND_BYTES_MAX} at most"
            ));
        } else if before.iter().any(|other| other.kind == *kind) {
            self.error("kind", "is there twice: rename or remove one of the two");
        }
        if plural.is_empty() {
            self.error(
                "plural",
                "has no plural: set `plural`, its path segment, for instance \"clusters\"",
            );
        } else if PLURALS_RESERVED.contains(&plural.as_str()) {
            self.error("plural", format!(
                "uses reserved plural \"{plural}\" which would shadow /{plural} root endpoint: choose another"
            ));
        } else if SUFFIXES.contains(&plural.as_str()) {
            self.error("plural", format!(
                "uses reserved plural \"{plural}\" which would shadow /{plural} below every resource: choose another"
            ));
        } else if !is_segment(plural) {
            self.error("plural", format!(
                "has the plural \"{plural}\", which is not a path segment: use lower-case letters, digits and hyphens, beginning with a letter, {KIND_BYTES_MAX} at most"
            ));
        } else if let Some(other) = before.iter().find(|other| other.plural == *plural) {
            let other = other.kind.clone();
            self.error(
                "plural",
                format!(
                    "has the plural \"{plural}\", which \"{other}\" has already: choose another"
                ),
            );
        }
    }

    fn adapters(&mut self) {
        let mut kinds = BTreeMap::from([
            (RECONCILED.to_owned(), "the service itself"),
            (LAST_KNOWN_RECONCILED.to_owned(), "the service itself"),
        ]);
        for adapter in &self.config.required_adapters {
            let kind = adapter_condition_type(adapter);
            if let Some(other) = kinds.insert(kind.clone(), adapter) {
                self.error("required_adapters", format!(
                    "requires adapters \"{other}\" and \"{adapter}\", which would share the condition type {kind}: rename or remove one"
                ));
            }
        }
    }

    fn parent(&mut self) {
        let parent_kind = &self.config.parent_kind;
        if parent_kind.is_empty() {
            return;
        }
        if !self.configs.iter().any(|c| c.kind == *parent_kind) {
            return self.error("parent_kind", format!(
                "has the parent_kind \"{parent_kind}\", which is not configured: add that entity or correct the name"
            ));
        }
        let parent_of = |kind: &str| {
            let config = self.configs.iter().find(|c| c.kind == kind)?;
            Some(config.parent_kind.as_str())
        };
        let chain = std::iter::successors(Some(parent_kind.as_str()), |kind| parent_of(kind));
        // A kind of the cycle returns to itself within as many steps as there are kinds.
        let mut chain = chain.take(self.configs.len());
        if chain.any(|kind| kind == self.config.kind) {
            self.error(
                "parent_kind",
                "owns itself through parent_kind: break the cycle",
            );
        }
    }

    fn conditions(&mut self, reserved: &BTreeSet<String>) -> Vec<Rule> {
        let config = self.config;
        condition_rules::compile(&config.conditions, reserved, |text| {
            self.error("conditions", text);
        })
    }

    fn references(&mut self) {
        let mut seen = BTreeSet::new();
        for (index, rule) in self.config.references.iter().enumerate() {
            let member = format!("references[{index}]");
            let (ref_type, target) = (&rule.ref_type, &rule.target_kind);
            if ref_type.is_empty() || !seen.insert(ref_type) {
                let text = format!(
                    "has a ref_type \"{ref_type}\" that is empty or not the only one: set it"
                );
                self.error(&member, text);
            }
            if !self.configs.iter().any(|c| c.kind == *target) {
                self.error(&member, format!(
                    "references the kind \"{target}\", which is not configured: add that entity or correct the name"
                ));
            }
        }
    }
}

fn is_identifier(text: &str) -> bool {
    text.len() <= KIND_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn is_segment(text: &str) -> bool {
    text.len() <= KIND_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

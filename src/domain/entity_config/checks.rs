//! Checks every configured kind at the start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::{
    ENTRIES_MAX, EntityConfig, KIND_BYTES_MAX, PLURALS_RESERVED, ReferenceConfig, effective_max,
    name_len_max, policy,
};
use crate::domain::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use crate::domain::condition_rules::{self, Rule};
use crate::domain::{Report, ResourceName};

/// Path segments below every resource, beside those of child kinds.
const SUFFIXES: [&str; 5] = ["events", "explain", "force-delete", "history", "statuses"];

/// Checks every kind; returns the rules of each.
///
/// # Errors
///
/// Every fault, in the order of the configuration.
pub(super) fn check(configs: &[EntityConfig]) -> Result<Vec<Vec<Rule>>, Vec<String>> {
    if configs.len() > ENTRIES_MAX {
        let count = configs.len();
        return Err(vec![format!(
            "entities: there are {count} entities; {ENTRIES_MAX} at most"
        )]);
    }
    let adapters = configs.iter().flat_map(|c| &c.required_adapters);
    let reserved = adapters.map(|a| adapter_condition_type(a)).collect();
    let (mut faults, mut rules) = (Vec::new(), Vec::new());
    for (index, config) in configs.iter().enumerate() {
        let mut check = Check {
            configs,
            config,
            index,
            faults: &mut faults,
        };
        check.names();
        check.lengths();
        check.adapters();
        check.parent();
        check.references();
        rules.push(check.conditions(&reserved));
    }
    if faults.is_empty() {
        required_cycles(configs, &mut faults);
    }
    if faults.is_empty() {
        Ok(rules)
    } else {
        Err(faults)
    }
}

/// A fault of a kind. It begins with the setting: the member of the kind, or the kind itself.
pub(super) fn fault(
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
    faults: &'a mut Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, member: &str, text: impl Display) {
        let entity = (self.index, self.config);
        self.faults.push(fault(entity, member, text));
    }

    fn names(&mut self) {
        let EntityConfig { kind, plural, .. } = self.config;
        let before = &self.configs[..self.index];
        if kind.is_empty() {
            self.fault(
                "kind",
                "has no kind: set `kind`, for instance to \"Cluster\"",
            );
        } else if !is_identifier(kind) {
            self.fault("kind", format!(
                "is not a usable name: give a letter followed by letters, digits, - or _, {KIND_BYTES_MAX} at most"
            ));
        } else if before.iter().any(|other| other.kind == *kind) {
            self.fault("kind", "is there twice: rename or remove one of the two");
        }
        if plural.is_empty() {
            self.fault(
                "plural",
                "has no plural: set `plural`, its path segment, for instance \"clusters\"",
            );
        } else if PLURALS_RESERVED.contains(&plural.as_str()) {
            self.fault("plural", format!(
                "uses reserved plural \"{plural}\" which would shadow /{plural} root endpoint: choose another"
            ));
        } else if SUFFIXES.contains(&plural.as_str()) {
            self.fault("plural", format!(
                "uses reserved plural \"{plural}\" which would shadow /{plural} below every resource: choose another"
            ));
        } else if !is_segment(plural) {
            self.fault("plural", format!(
                "has the plural \"{plural}\", which is not a path segment: use lower-case letters, digits and hyphens, beginning with a letter, {KIND_BYTES_MAX} at most"
            ));
        } else if let Some(other) = before.iter().find(|other| other.plural == *plural) {
            let other = other.kind.clone();
            self.fault(
                "plural",
                format!(
                    "has the plural \"{plural}\", which \"{other}\" has already: choose another"
                ),
            );
        }
    }

    fn lengths(&mut self) {
        let &EntityConfig {
            name_min_len: min,
            name_max_len: max,
            ..
        } = self.config;
        if min < 0 || max < 0 {
            let member = if min < 0 {
                "name_min_len"
            } else {
                "name_max_len"
            };
            self.fault(
                member,
                "has a negative name length: use 0 for no limit of its own",
            );
        } else if max > name_len_max() {
            let limit = ResourceName::BYTES_MAX;
            self.fault(
                "name_max_len",
                format!("has name_max_len {max}: names have {limit} bytes at most"),
            );
        } else if min > effective_max(self.config) {
            let max = effective_max(self.config);
            self.fault(
                "name_min_len",
                format!("has name_min_len {min} above name_max_len {max}: no name would fit"),
            );
        }
    }

    fn adapters(&mut self) {
        let adapters = &self.config.required_adapters;
        if adapters.len() > ENTRIES_MAX {
            let count = adapters.len();
            return self.fault(
                "required_adapters",
                format!("requires {count} adapters; {ENTRIES_MAX} at most"),
            );
        }
        let mut kinds = BTreeMap::from([
            (RECONCILED.to_owned(), "the service itself"),
            (LAST_KNOWN_RECONCILED.to_owned(), "the service itself"),
        ]);
        for adapter in adapters {
            if adapter.is_empty()
                || adapter.len() > Report::ADAPTER_BYTES_MAX
                || adapter.contains('\0')
            {
                self.fault("required_adapters", format!(
                    "requires an adapter whose name is empty or longer than {} bytes: correct or remove it",
                    Report::ADAPTER_BYTES_MAX
                ));
                continue;
            }
            let kind = adapter_condition_type(adapter);
            match kinds.insert(kind.clone(), adapter) {
                Some(other) if other == adapter => {
                    self.fault("required_adapters", format!("requires adapter \"{adapter}\" twice: remove one"));
                }
                Some(other) => self.fault("required_adapters", format!(
                    "requires adapters \"{other}\" and \"{adapter}\", which would share the condition type {kind}: rename one"
                )),
                None => {}
            }
        }
    }

    fn parent(&mut self) {
        let EntityConfig {
            parent_kind,
            on_parent_delete,
            ..
        } = self.config;
        if policy(on_parent_delete).is_none() {
            self.fault(
                "on_parent_delete",
                format!(
                    "has on_parent_delete \"{on_parent_delete}\": use \"restrict\" or \"cascade\""
                ),
            );
        }
        if parent_kind.is_empty() {
            if !on_parent_delete.is_empty() {
                self.fault(
                    "on_parent_delete",
                    "has on_parent_delete but no parent_kind: set one or remove the other",
                );
            }
            return;
        }
        if !self.configs.iter().any(|c| c.kind == *parent_kind) {
            return self.fault("parent_kind", format!(
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
            self.fault(
                "parent_kind",
                "owns itself through parent_kind: break the cycle",
            );
        }
    }

    fn conditions(&mut self, reserved: &BTreeSet<String>) -> Vec<Rule> {
        let config = self.config;
        condition_rules::compile(&config.conditions, reserved, |text| {
            self.fault("conditions", text);
        })
    }

    fn references(&mut self) {
        let rules = &self.config.references;
        if rules.len() > ENTRIES_MAX {
            let count = rules.len();
            return self.fault(
                "references",
                format!("has {count} references; {ENTRIES_MAX} at most"),
            );
        }
        let mut seen = BTreeSet::new();
        for (index, rule) in rules.iter().enumerate() {
            let member = format!("references[{index}]");
            let ReferenceConfig {
                ref_type,
                target_kind,
                min,
                max,
            } = rule;
            if ref_type.is_empty() || ref_type.len() > KIND_BYTES_MAX || ref_type.contains('\0') {
                self.fault(&member, format!(
                    "has a reference whose ref_type is empty or longer than {KIND_BYTES_MAX} bytes: set it"
                ));
            } else if !seen.insert(ref_type) {
                self.fault(
                    &member,
                    format!("declares ref_type \"{ref_type}\" twice: merge the two"),
                );
            }
            if !self.configs.iter().any(|c| c.kind == *target_kind) {
                self.fault(&member, format!(
                    "references the kind \"{target_kind}\", which is not configured: add that entity or correct the name"
                ));
            }
            if *min < 0 || *max < 0 {
                self.fault(
                    &member,
                    format!("has a negative count in reference \"{ref_type}\": use 0 for none"),
                );
            } else if *max > 0 && max < min {
                self.fault(
                    &member,
                    format!("has max {max} below min {min} in reference \"{ref_type}\": swap them"),
                );
            }
        }
    }
}

/// Finds kinds that need each other before either can be created: as a required reference, or as an owner.
fn required_cycles(configs: &[EntityConfig], faults: &mut Vec<String>) {
    for (index, config) in configs.iter().enumerate() {
        let mut reached = BTreeSet::new();
        let mut open = vec![config.kind.as_str()];
        while let Some(kind) = open.pop() {
            let Some(from) = configs.iter().find(|c| c.kind == kind) else {
                continue;
            };
            let required = from.references.iter().filter(|r| r.min > 0);
            let targets = required.map(|r| r.target_kind.as_str());
            for target in targets.chain([from.parent_kind.as_str()]) {
                if reached.insert(target) {
                    open.push(target);
                }
            }
        }
        if reached.contains(config.kind.as_str()) {
            let text = "needs another of itself first, through required references and parents, so that none could ever be created: set min to 0 on one of the references";
            faults.push(fault((index, config), "", text));
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

//! The registry of kinds as it is configured, and every check that it must pass at start
//! (domain rule 5.2). All faults are named at once, each with what to change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use super::entity::{DeletePolicy, Entity, EntityRegistry, ReferenceRule};
use super::mapping::{self, Paths, Rule, RuleConfig, Rules};
use super::{Report, ResourceName};

/// Plurals that routes of the service itself occupy.
pub const PLURALS_RESERVED: [&str; 5] = ["resources", "audit", "fleet", "openapi", "openapi.html"];
/// What stands below every resource, where child kinds stand, too.
const SUFFIXES: [&str; 2] = ["statuses", "force-delete"];
/// Longest kind, plural and reference type, in bytes.
pub const KIND_BYTES_MAX: usize = 100;
/// Most kinds, and most entries of any list in one kind.
pub const ENTRIES_MAX: usize = 200;

/// One entry of the configuration's `entities` list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EntityConfig {
    /// The discriminator, `PascalCase`.
    pub kind: String,
    /// The path segment.
    pub plural: String,
    /// The kind that owns it; empty for none.
    pub parent_kind: String,
    /// `restrict` or `cascade`; empty means `restrict`.
    pub on_parent_delete: String,
    /// Component of the schema document that its specs must fit.
    pub spec_schema_name: String,
    /// Whether a schema document without that component is a fault.
    pub require_spec_schema: bool,
    /// Adapters that must report.
    pub required_adapters: Vec<String>,
    /// Shortest name, in bytes; 0 for no limit of its own.
    pub name_min_len: i64,
    /// Longest name, in bytes; 0 for 100.
    pub name_max_len: i64,
    /// Links to other kinds.
    pub references: Vec<ReferenceConfig>,
    /// What derives further conditions from its resources and their reports.
    pub conditions: Vec<RuleConfig>,
}

/// One entry of a kind's `references` list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReferenceConfig {
    /// Name of the link.
    pub ref_type: String,
    /// Kind of its targets.
    pub target_kind: String,
    /// Fewest targets.
    pub min: i64,
    /// Most targets; 0 for no limit.
    pub max: i64,
}

/// What is wrong with the configured kinds. One sentence a fault, each saying how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configured entities do not fit together:\n  - {}", .0.join("\n  - "))]
pub struct InvalidEntities(pub Vec<String>);

/// The kinds of a service that configures none: clusters and the node pools they own.
#[must_use]
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
            on_parent_delete: "cascade".to_owned(),
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
/// Every fault, in the order of the configuration.
pub fn registry(configs: &[EntityConfig]) -> Result<EntityRegistry, InvalidEntities> {
    let mut faults = Vec::new();
    let mut rules = Vec::new();
    if configs.len() > ENTRIES_MAX {
        faults.push(format!(
            "there are {} entities; {ENTRIES_MAX} at most",
            configs.len()
        ));
    } else {
        let adapters = configs.iter().flat_map(|c| &c.required_adapters);
        let reserved = adapters.map(|a| adapter_condition_type(a)).collect();
        for (index, config) in configs.iter().enumerate() {
            let mut check = Check {
                configs,
                config,
                label: label(index, config),
                faults: &mut faults,
            };
            check.names(index);
            check.lengths();
            check.adapters();
            check.parent();
            check.references();
            rules.push(check.conditions(&reserved));
        }
        if faults.is_empty() {
            required_cycles(configs, &mut faults);
        }
    }
    if faults.is_empty() {
        let made = configs.iter().zip(rules);
        let made = made.map(|(config, rules)| entity(config, configs, rules));
        Ok(EntityRegistry::new(made.collect()))
    } else {
        Err(InvalidEntities(faults))
    }
}

fn label(index: usize, config: &EntityConfig) -> String {
    if config.kind.is_empty() {
        format!("entities[{index}]")
    } else {
        format!("entity kind \"{}\"", config.kind)
    }
}

/// The checks of one kind.
struct Check<'a> {
    configs: &'a [EntityConfig],
    config: &'a EntityConfig,
    label: String,
    faults: &'a mut Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, text: impl std::fmt::Display) {
        self.faults.push(format!("{} {text}", self.label));
    }

    fn names(&mut self, index: usize) {
        let EntityConfig { kind, plural, .. } = self.config;
        let before = &self.configs[..index];
        if kind.is_empty() {
            self.fault("has no kind: set `kind`, for instance to \"Cluster\"");
        } else if !is_identifier(kind) {
            self.fault(format!(
                "is not a usable name: give a letter followed by letters, digits, - or _, {KIND_BYTES_MAX} at most"
            ));
        } else if before.iter().any(|other| other.kind == *kind) {
            self.fault("is there twice: rename or remove one of the two");
        }
        if plural.is_empty() {
            self.fault("has no plural: set `plural`, its path segment, for instance \"clusters\"");
        } else if PLURALS_RESERVED.contains(&plural.as_str()) {
            self.fault(format!(
                "uses reserved plural \"{plural}\" which would shadow /{plural} root endpoint: choose another"
            ));
        } else if SUFFIXES.contains(&plural.as_str()) {
            self.fault(format!(
                "uses reserved plural \"{plural}\" which would shadow /{plural} below every resource: choose another"
            ));
        } else if !is_segment(plural) {
            self.fault(format!(
                "has the plural \"{plural}\", which is not a path segment: use lower-case letters, digits and hyphens, beginning with a letter, {KIND_BYTES_MAX} at most"
            ));
        } else if let Some(other) = before.iter().find(|other| other.plural == *plural) {
            let other = other.kind.clone();
            self.fault(format!(
                "has the plural \"{plural}\", which \"{other}\" has already: choose another"
            ));
        }
    }

    fn lengths(&mut self) {
        let &EntityConfig {
            name_min_len: min,
            name_max_len: max,
            ..
        } = self.config;
        if min < 0 || max < 0 {
            self.fault("has a negative name length: use 0 for no limit of its own");
        } else if max > name_len_max() {
            let limit = ResourceName::BYTES_MAX;
            self.fault(format!(
                "has name_max_len {max}: names have {limit} bytes at most"
            ));
        } else if min > effective_max(self.config) {
            let max = effective_max(self.config);
            self.fault(format!(
                "has name_min_len {min} above name_max_len {max}: no name would fit"
            ));
        }
    }

    fn adapters(&mut self) {
        let adapters = &self.config.required_adapters;
        if adapters.len() > ENTRIES_MAX {
            let count = adapters.len();
            return self.fault(format!("requires {count} adapters; {ENTRIES_MAX} at most"));
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
                self.fault(format!(
                    "requires an adapter whose name is empty or longer than {} bytes: correct or remove it",
                    Report::ADAPTER_BYTES_MAX
                ));
                continue;
            }
            let kind = adapter_condition_type(adapter);
            match kinds.insert(kind.clone(), adapter) {
                Some(other) if other == adapter => {
                    self.fault(format!("requires adapter \"{adapter}\" twice: remove one"));
                }
                Some(other) => self.fault(format!(
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
            self.fault(format!(
                "has on_parent_delete \"{on_parent_delete}\": use \"restrict\" or \"cascade\""
            ));
        }
        if parent_kind.is_empty() {
            if !on_parent_delete.is_empty() {
                self.fault("has on_parent_delete but no parent_kind: set one or remove the other");
            }
            return;
        }
        if !self.configs.iter().any(|c| c.kind == *parent_kind) {
            return self.fault(format!(
                "has the parent_kind \"{parent_kind}\", which is not configured: add that entity or correct the name"
            ));
        }
        let parent_of = |kind: &str| {
            let config = self.configs.iter().find(|c| c.kind == kind)?;
            Some(config.parent_kind.as_str())
        };
        let chain = std::iter::successors(Some(parent_kind.as_str()), |kind| parent_of(kind));
        // Whoever is in it at all, is so within as many steps as there are kinds.
        let mut chain = chain.take(self.configs.len());
        if chain.any(|kind| kind == self.config.kind) {
            self.fault("owns itself through parent_kind: break the cycle");
        }
    }

    fn conditions(&mut self, reserved: &BTreeSet<String>) -> Vec<Rule> {
        let config = self.config;
        mapping::compile(&config.conditions, reserved, |text| self.fault(text))
    }

    fn references(&mut self) {
        let rules = &self.config.references;
        if rules.len() > ENTRIES_MAX {
            let count = rules.len();
            return self.fault(format!("has {count} references; {ENTRIES_MAX} at most"));
        }
        let mut seen = BTreeSet::new();
        for rule in rules {
            let ReferenceConfig {
                ref_type,
                target_kind,
                min,
                max,
            } = rule;
            if ref_type.is_empty() || ref_type.len() > KIND_BYTES_MAX || ref_type.contains('\0') {
                self.fault(format!(
                    "has a reference whose ref_type is empty or longer than {KIND_BYTES_MAX} bytes: set it"
                ));
            } else if !seen.insert(ref_type) {
                self.fault(format!(
                    "declares ref_type \"{ref_type}\" twice: merge the two"
                ));
            }
            if !self.configs.iter().any(|c| c.kind == *target_kind) {
                self.fault(format!(
                    "references the kind \"{target_kind}\", which is not configured: add that entity or correct the name"
                ));
            }
            if *min < 0 || *max < 0 {
                self.fault(format!(
                    "has a negative count in reference \"{ref_type}\": use 0 for none"
                ));
            } else if *max > 0 && max < min {
                self.fault(format!(
                    "has max {max} below min {min} in reference \"{ref_type}\": swap them"
                ));
            }
        }
    }
}

/// Kinds that need each other before either can be created: as what they must link to, or as what
/// must own them.
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
            faults.push(format!(
                "{} needs another of itself first, through required references and parents, so that none could ever be created: set min to 0 on one of the references",
                label(index, config)
            ));
        }
    }
}

fn entity(config: &EntityConfig, configs: &[EntityConfig], rules: Vec<Rule>) -> Entity {
    let count = |n: i64| usize::try_from(n).unwrap_or(0);
    let references = config.references.iter().map(|rule| ReferenceRule {
        ref_type: rule.ref_type.clone(),
        target_kind: rule.target_kind.clone(),
        min: count(rule.min),
        max: count(rule.max),
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
        on_parent_delete: policy(&config.on_parent_delete).unwrap_or_default(),
        required_adapters: config.required_adapters.clone(),
        name_bytes_min: count(config.name_min_len),
        name_bytes_max: count(effective_max(config)),
        references: references.collect(),
        // The document with the schemas is another source: see `super::schema::attach`.
        spec_schema: None,
        rules: (!rules.is_empty()).then(|| Arc::new(Rules::new(rules, paths))),
    }
}

fn policy(text: &str) -> Option<DeletePolicy> {
    match text {
        "" | "restrict" => Some(DeletePolicy::Restrict),
        "cascade" => Some(DeletePolicy::Cascade),
        _ => None,
    }
}

fn effective_max(config: &EntityConfig) -> i64 {
    match config.name_max_len {
        0 => name_len_max(),
        max => max,
    }
}

/// Longest name of all, in the type of the configured lengths.
fn name_len_max() -> i64 {
    i64::try_from(ResourceName::BYTES_MAX).unwrap_or(i64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(kind: &str, plural: &str) -> EntityConfig {
        EntityConfig {
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            ..EntityConfig::default()
        }
    }

    fn reference(ref_type: &str, target_kind: &str, min: i64, max: i64) -> ReferenceConfig {
        ReferenceConfig {
            ref_type: ref_type.to_owned(),
            target_kind: target_kind.to_owned(),
            min,
            max,
        }
    }

    #[test]
    fn the_built_in_kinds_pass() {
        let registry = registry(&built_in()).unwrap();
        let nodepool = registry.get("NodePool").unwrap();
        assert_eq!(nodepool.parent.as_deref(), Some("Cluster"));
        assert_eq!(nodepool.on_parent_delete, DeletePolicy::Cascade);
        assert_eq!((nodepool.name_bytes_min, nodepool.name_bytes_max), (3, 15));
        assert_eq!(registry.levels_below("Cluster"), 1);
        assert_eq!(registry.levels_below("NodePool"), 0);
        assert_eq!(
            (registry.depth("Cluster"), registry.depth("NodePool")),
            (0, 1)
        );
        assert!(registry.required_adapters("Gone").is_empty());
    }

    #[test]
    fn no_kinds_at_all_are_legal() {
        assert!(registry(&[]).unwrap().entities().is_empty());
    }

    #[test]
    fn an_empty_delete_policy_means_restrict() {
        let child = EntityConfig {
            parent_kind: "A".to_owned(),
            ..kind("B", "bs")
        };
        let registry = registry(&[kind("A", "as"), child]).unwrap();
        assert_eq!(
            registry.get("B").unwrap().on_parent_delete,
            DeletePolicy::Restrict
        );
    }

    #[test]
    fn unset_name_limits_are_those_of_all_names() {
        let registry = registry(&[kind("A", "as")]).unwrap();
        let entity = registry.get("A").unwrap();
        assert_eq!((entity.name_bytes_min, entity.name_bytes_max), (0, 100));
    }

    #[test]
    fn optional_references_may_go_in_circles() {
        let mut a = kind("A", "as");
        a.references = vec![reference("b", "B", 1, 1), reference("self", "A", 0, 0)];
        let mut b = kind("B", "bs");
        b.references = vec![reference("a", "A", 0, 1)];
        assert!(registry(&[a, b]).is_ok());
    }

    /// A good kind A, and a kind B that `change` spoils.
    fn with(change: &dyn Fn(&mut EntityConfig)) -> Vec<EntityConfig> {
        let mut config = kind("B", "bs");
        change(&mut config);
        vec![kind("A", "as"), config]
    }

    /// Every start-up check, and that its message says what to do.
    fn assert_faults(cases: Vec<(Vec<EntityConfig>, &str)>) {
        for (configs, expected) in cases {
            let InvalidEntities(faults) = registry(&configs).unwrap_err();
            assert!(
                faults.iter().any(|f| f.contains(expected)),
                "{expected:?} not in {faults:?}"
            );
        }
    }

    #[test]
    fn faulty_kinds_and_plurals_are_named_with_their_mending() {
        assert_faults(vec![
            (
                with(&|b| b.kind = String::new()),
                "entities[1] has no kind: set `kind`",
            ),
            (
                with(&|b| b.plural = String::new()),
                "entity kind \"B\" has no plural: set `plural`",
            ),
            (with(&|b| b.kind = "A".to_owned()), "is there twice: rename"),
            (
                with(&|b| b.kind = "a b".to_owned()),
                "is not a usable name: give a letter",
            ),
            (with(&|b| b.kind = "K".repeat(101)), "is not a usable name"),
            (
                with(&|b| b.plural = "as".to_owned()),
                "which \"A\" has already: choose another",
            ),
            (
                with(&|b| b.plural = "a/b".to_owned()),
                "which is not a path segment: use lower-case",
            ),
            (
                with(&|b| b.plural = "1s".to_owned()),
                "which is not a path segment",
            ),
            (
                with(&|b| b.plural = "s".repeat(101)),
                "which is not a path segment",
            ),
            (
                with(&|b| b.plural = "resources".to_owned()),
                "entity kind \"B\" uses reserved plural \"resources\" which would shadow /resources root endpoint",
            ),
            (
                with(&|b| b.plural = "audit".to_owned()),
                "uses reserved plural \"audit\"",
            ),
            (
                with(&|b| b.plural = "fleet".to_owned()),
                "uses reserved plural \"fleet\"",
            ),
            (
                with(&|b| b.plural = "openapi".to_owned()),
                "uses reserved plural \"openapi\"",
            ),
            (
                with(&|b| b.plural = "statuses".to_owned()),
                "uses reserved plural \"statuses\" which would shadow /statuses below every resource",
            ),
            (
                with(&|b| b.plural = "force-delete".to_owned()),
                "uses reserved plural \"force-delete\"",
            ),
        ]);
    }

    #[test]
    fn faulty_name_lengths_and_adapters_are_named_with_their_mending() {
        assert_faults(vec![
            (
                with(&|b| b.name_min_len = -1),
                "negative name length: use 0",
            ),
            (
                with(&|b| b.name_max_len = -1),
                "negative name length: use 0",
            ),
            (
                with(&|b| b.name_max_len = 101),
                "names have 100 bytes at most",
            ),
            (
                with(&|b| b.name_min_len = 101),
                "name_min_len 101 above name_max_len 100",
            ),
            (
                with(&|b| (b.name_min_len, b.name_max_len) = (5, 4)),
                "name_min_len 5 above name_max_len 4",
            ),
            (
                with(&|b| b.required_adapters = vec!["x".to_owned(), "x".to_owned()]),
                "requires adapter \"x\" twice: remove one",
            ),
            (
                with(&|b| b.required_adapters = vec!["a-b".to_owned(), "aB".to_owned()]),
                "\"a-b\" and \"aB\", which would share the condition type ABSuccessful: rename one",
            ),
            (
                with(&|b| b.required_adapters = vec![String::new()]),
                "whose name is empty or longer than 255",
            ),
            (
                with(&|b| b.required_adapters = vec!["x".repeat(256)]),
                "whose name is empty or longer",
            ),
            (
                with(&|b| b.required_adapters = (0..201).map(|n| n.to_string()).collect()),
                "requires 201 adapters; 200 at most",
            ),
        ]);
    }

    #[test]
    fn faulty_parents_and_references_are_named_with_their_mending() {
        assert_faults(vec![
            (
                with(&|b| {
                    b.parent_kind = "A".to_owned();
                    b.on_parent_delete = "casade".to_owned();
                }),
                "has on_parent_delete \"casade\": use \"restrict\" or \"cascade\"",
            ),
            (
                with(&|b| b.on_parent_delete = "cascade".to_owned()),
                "has on_parent_delete but no parent_kind",
            ),
            (
                with(&|b| b.parent_kind = "X".to_owned()),
                "parent_kind \"X\", which is not configured: add",
            ),
            (
                with(&|b| b.parent_kind = "B".to_owned()),
                "owns itself through parent_kind: break",
            ),
            (
                with(&|b| b.references = vec![reference("", "A", 0, 0)]),
                "whose ref_type is empty or longer than 100 bytes",
            ),
            (
                with(&|b| {
                    b.references = vec![reference("r", "A", 0, 0), reference("r", "A", 0, 0)];
                }),
                "declares ref_type \"r\" twice: merge",
            ),
            (
                with(&|b| b.references = vec![reference("r", "X", 0, 0)]),
                "references the kind \"X\", which is not configured",
            ),
            (
                with(&|b| b.references = vec![reference("r", "A", -1, 0)]),
                "negative count in reference \"r\"",
            ),
            (
                with(&|b| b.references = vec![reference("r", "A", 2, 1)]),
                "has max 1 below min 2 in reference \"r\": swap them",
            ),
            (
                with(&|b| b.references = vec![reference("r", "B", 1, 1)]),
                "needs another of itself first",
            ),
        ]);
    }

    #[test]
    fn cycles_through_others_are_found() {
        let child = |name: &str, plural: &str, parent: &str| EntityConfig {
            parent_kind: parent.to_owned(),
            ..kind(name, plural)
        };
        let owners = [
            child("A", "as", "C"),
            child("B", "bs", "A"),
            child("C", "cs", "B"),
        ];
        let faults = registry(&owners).unwrap_err().0;
        assert_eq!(faults.len(), 3);
        assert!(
            faults.iter().all(|f| f.contains("owns itself")),
            "{faults:?}"
        );
        // B hangs on a cycle without being part of it.
        let owners = [child("A", "as", "A"), child("B", "bs", "A")];
        assert_eq!(registry(&owners).unwrap_err().0.len(), 1);

        let mut a = kind("A", "as");
        a.references = vec![reference("b", "B", 1, 0)];
        let mut b = kind("B", "bs");
        b.references = vec![reference("a", "A", 1, 0)];
        assert_eq!(registry(&[a, b]).unwrap_err().0.len(), 2);

        // One cannot be without the other, nor the other without its owner.
        let mut a = kind("A", "as");
        a.references = vec![reference("b", "B", 1, 0)];
        let b = child("B", "bs", "A");
        assert_eq!(registry(&[a.clone(), b.clone()]).unwrap_err().0.len(), 2);
        a.references[0].min = 0;
        assert!(registry(&[a, b]).is_ok());
    }

    /// Makes a part of a kind so long, or so large.
    type Change<'a> = &'a dyn Fn(&mut EntityConfig, usize);

    #[test]
    fn what_reaches_a_limit_is_within_it() {
        let long = |count: usize| "a".repeat(count);
        let many = |count: usize| -> Vec<_> { (0..count).map(|n| format!("a{n}")).collect() };
        let links = |count: usize| -> Vec<_> {
            let names = many(count).into_iter();
            names.map(|name| reference(&name, "A", 0, 0)).collect()
        };
        let changes: [(&str, Change<'_>, usize); 8] = [
            ("kind", &|b, n| b.kind = long(n), KIND_BYTES_MAX),
            ("plural", &|b, n| b.plural = long(n), KIND_BYTES_MAX),
            (
                "name_max_len",
                &|b, n| b.name_max_len = i64::try_from(n).unwrap(),
                ResourceName::BYTES_MAX,
            ),
            (
                "name_min_len",
                &|b, n| (b.name_min_len, b.name_max_len) = (i64::try_from(n).unwrap(), 50),
                50,
            ),
            (
                "adapters",
                &|b, n| b.required_adapters = many(n),
                ENTRIES_MAX,
            ),
            (
                "adapter",
                &|b, n| b.required_adapters = vec![long(n)],
                Report::ADAPTER_BYTES_MAX,
            ),
            ("references", &|b, n| b.references = links(n), ENTRIES_MAX),
            (
                "ref_type",
                &|b, n| b.references = vec![reference(&long(n), "A", 0, 0)],
                KIND_BYTES_MAX,
            ),
        ];
        for (what, change, max) in changes {
            assert!(registry(&with(&|b| change(b, max))).is_ok(), "{what}");
            assert!(registry(&with(&|b| change(b, max + 1))).is_err(), "{what}");
        }
        assert!(registry(&with(&|b| b.kind = "B-1_x".to_owned())).is_ok());
        // As many as at least.
        assert!(registry(&with(&|b| b.references = vec![reference("r", "A", 2, 2)])).is_ok());
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let configs = [kind("", ""), kind("A", "as"), kind("A", "as")];
        assert_eq!(registry(&configs).unwrap_err().0.len(), 4);
    }

    #[test]
    fn there_is_a_limit_to_kinds() {
        let many: Vec<_> = (0..=ENTRIES_MAX)
            .map(|n| kind(&format!("K{n}"), &format!("k{n}")))
            .collect();
        assert!(registry(&many[1..]).is_ok());
        assert!(registry(&many).is_err());
    }
}

//! What the document calls each kind. Names end up in clients' code: they follow the older
//! document, depend on nothing but the configuration, and never meet one another.

use std::collections::{BTreeMap, BTreeSet};

use super::fixed;
use crate::domain::{Entity, EntityRegistry};

/// Schemas of answers and problems that belong to no kind; those without a struct are in `fixed`.
#[rustfmt::skip]
const ANSWERS: [&str; 9] = [
    "AdapterStatus", "AdapterStatusList", "AuditEntry", "AuditList", "Error", "ObjectReference",
    "SparseResource", "ValidationError", "ValidationErrorConstraint",
];
/// What is put behind the name of a kind for the schemas that it has.
#[rustfmt::skip]
const SUFFIXES: [&str; 6] = [
    "", "CreateRequest", "List", "PatchRequest", "Spec", "Status",
];

/// What one kind is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindNames {
    /// One of them, as its schema is called: `NodePool`.
    pub one: String,
    /// Several of them: `NodePools`.
    pub many: String,
    /// Its id in paths: `nodepool_id`.
    pub id: String,
}

/// What all kinds are called, and resources of any kind.
#[derive(Debug, Clone)]
pub struct Names {
    any: KindNames,
    of: BTreeMap<String, KindNames>,
}

impl Names {
    /// Names for every kind. One whose schemas would be called like others gets `Kind` appended
    /// until they are not; names that differ by case alone count as the same, because generators
    /// make files of them.
    pub fn new(registry: &EntityRegistry) -> Self {
        let mut taken: BTreeSet<_> = fixed().collect();
        let any = KindNames {
            one: "Resource".to_owned(),
            many: "Resources".to_owned(),
            id: "resource_id".to_owned(),
        };
        taken.extend(schemas_of(&any.one));
        let mut of = BTreeMap::new();
        for entity in registry.entities() {
            let mut one = pascal(&entity.kind);
            while schemas_of(&one).any(|name| taken.contains(&name)) {
                one.push_str("Kind");
            }
            taken.extend(schemas_of(&one));
            let names = KindNames {
                many: many(&one, entity),
                id: format!("{}_id", entity.kind.to_lowercase().replace('-', "_")),
                one,
            };
            of.insert(entity.kind.clone(), names);
        }
        Self { any, of }
    }

    /// The names of a kind; those of resources of any kind where none is meant.
    pub fn of(&self, kind: Option<&str>) -> &KindNames {
        kind.and_then(|kind| self.of.get(kind)).unwrap_or(&self.any)
    }
}

impl KindNames {
    /// What one of its schemas is called: `ClusterList` for `List`.
    pub fn schema(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.one)
    }
}

/// Schemas that belong to no kind, in lower case.
fn fixed() -> impl Iterator<Item = String> {
    let written = fixed::fixed().into_iter().map(|(name, _)| name);
    let all = written.chain(ANSWERS.map(str::to_owned));
    all.map(|name| name.to_lowercase())
}

fn schemas_of(one: &str) -> impl Iterator<Item = String> {
    SUFFIXES
        .map(|suffix| format!("{one}{suffix}").to_lowercase())
        .into_iter()
}

/// `node-pool` is `NodePool`.
fn pascal(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(['-', '_']) {
        let first = name.len();
        name.push_str(word);
        if let Some(first) = name.get_mut(first..=first) {
            first.make_ascii_uppercase();
        }
    }
    name
}

/// The plural in the letters of the kind, as far as both are the same: `NodePool` and `nodepools`
/// are `NodePools`, `Policy` and `policies` are `Policies`.
fn many(one: &str, entity: &Entity) -> String {
    let plural = pascal(&entity.plural);
    let both = one.chars().zip(plural.chars());
    let common = both.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let (kept, rest) = (one.chars().take(common), plural.chars().skip(common));
    kept.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::entity_config::{EntityConfig, registry};

    fn names(kinds: &[(&str, &str)]) -> Vec<(String, String, String)> {
        let config = |&(kind, plural): &(&str, &str)| EntityConfig {
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            ..EntityConfig::default()
        };
        let configs: Vec<_> = kinds.iter().map(config).collect();
        let names = Names::new(&registry(&configs).unwrap());
        let all = kinds.iter().map(|(kind, _)| names.of(Some(kind)).clone());
        all.map(|n| (n.one, n.many, n.id)).collect()
    }

    #[test]
    fn names_are_those_of_the_older_document() {
        for (kind, plural, expected) in [
            ("Cluster", "clusters", ("Cluster", "Clusters", "cluster_id")),
            (
                "NodePool",
                "nodepools",
                ("NodePool", "NodePools", "nodepool_id"),
            ),
            (
                "WifConfig",
                "wifconfigs",
                ("WifConfig", "WifConfigs", "wifconfig_id"),
            ),
            ("Policy", "policies", ("Policy", "Policies", "policy_id")),
            (
                "node-pool",
                "node-pools",
                ("NodePool", "NodePools", "node_pool_id"),
            ),
            ("Mouse", "mice", ("Mouse", "Mice", "mouse_id")),
        ] {
            let (one, many, id) = &names(&[(kind, plural)])[0];
            assert_eq!((&**one, &**many, &**id), expected);
        }
    }

    #[test]
    fn no_two_kinds_share_a_schema() {
        let kinds = [
            ("Resource", "ours"),
            ("Adapter", "adapters"),
            ("Error", "errors"),
            ("ClusterList", "lists"),
            ("Cluster", "clusters"),
            ("cluster", "others"),
            ("clu-ster", "thirds"),
            ("ClusterKind", "fourths"),
        ];
        let names = names(&kinds);
        let all = names.iter().flat_map(|(one, _, _)| schemas_of(one));
        let mut all: Vec<_> = all.chain(fixed()).chain(schemas_of("Resource")).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "{names:?}");
        assert_eq!(names[1].0, "AdapterKind");
    }
}

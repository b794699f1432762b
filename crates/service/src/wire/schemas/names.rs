//! Names of each kind in the document. They end up in clients' code: they follow the older document, depend only on
//! the configuration, and are unique.

use std::collections::{BTreeMap, BTreeSet};

use super::{of_no_kind, pascal};
use hyperfleet_domain::{Entity, EntityRegistry};

/// Names of responses. Some generators make a type of each, beside those of schemas.
#[rustfmt::skip]
const RESPONSES: [&str; 16] = [
    "BadRequest", "Conflict", "Forbidden", "GatewayTimeout", "Gone", "InternalServerError", "MethodNotAllowed", "NotFound",
    "PayloadTooLarge", "PreconditionFailed", "RequestTimeout", "ServiceUnavailable", "TooManyRequests", "Unauthorized",
    "UnprocessableEntity", "UnsupportedMediaType",
];
/// Schemas of problems. The others are in [`super::of_no_kind`].
const PROBLEMS: [&str; 3] = ["Error", "ValidationError", "ValidationErrorConstraint"];
/// Suffixes of a kind's name in the names of its schemas.
#[rustfmt::skip]
const SUFFIXES: [&str; 6] = [
    "", "CreateRequest", "List", "PatchRequest", "Spec", "Status",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindNames {
    /// The singular, as in the name of its schema: `NodePool`.
    pub one: String,
    /// The plural: `NodePools`.
    pub many: String,
    /// The parameter of its id in paths: `nodepool_id`.
    pub id: String,
}

/// The names of all kinds, and of resources of any kind.
#[derive(Debug, Clone)]
pub struct Names {
    any: KindNames,
    of: BTreeMap<String, KindNames>,
}

impl Names {
    /// Names for every kind. A kind whose schemas would have a taken name gets `Kind` appended until they do not.
    /// Names that differ only by case count as the same, because generators turn them into files.
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

    /// The names of a kind; without one, those of resources of any kind.
    pub fn of(&self, kind: Option<&str>) -> &KindNames {
        kind.and_then(|kind| self.of.get(kind)).unwrap_or(&self.any)
    }
}

impl KindNames {
    /// The name of one of its schemas: `ClusterList` for `List`.
    pub fn schema(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.one)
    }
}

/// The names of schemas and responses that belong to no kind, in lower case.
fn fixed() -> impl Iterator<Item = String> {
    let schemas = of_no_kind().into_iter().map(|(name, _)| name);
    let others = PROBLEMS.into_iter().chain(RESPONSES).map(str::to_owned);
    schemas.chain(others).map(|name| name.to_lowercase())
}

fn schemas_of(one: &str) -> impl Iterator<Item = String> {
    SUFFIXES
        .map(|suffix| format!("{one}{suffix}").to_lowercase())
        .into_iter()
}

/// The plural with the capitals of the kind, up to the first difference: `NodePool` and `nodepools` are `NodePools`,
/// `Policy` and `policies` are `Policies`.
fn many(one: &str, entity: &Entity) -> String {
    let plural = pascal(&entity.plural);
    let both = one.chars().zip(plural.chars());
    let common = both.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let (prefix, rest) = (one.chars().take(common), plural.chars().skip(common));
    prefix.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfleet_domain::entity_config::{EntityConfig, registry};

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

//! The kinds of resources. Kinds are configuration: there is no code per kind.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use serde::{Deserialize, Serialize};

use super::condition_rules::KindRules;
use super::schema::SpecSchema;
use super::{PATHS_BASE, ResourceId, Violations};

/// What deleting a parent does to its children of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeletePolicy {
    /// It is refused while an active child exists. The default.
    #[default]
    #[serde(alias = "")]
    Restrict,
    /// The children are deleted with it.
    Cascade,
}

/// How resources of one kind may reference others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceRule {
    pub ref_type: String,
    pub target_kind: String,
    /// Fewest targets; from 1 on the reference is required.
    pub min: usize,
    /// Most targets; 0 for no limit.
    pub max: usize,
}

/// One kind of resource. Checked: [`EntityRegistry`] ensures that everything it names exists.
#[derive(Debug, Clone)]
pub struct Entity {
    /// The name, as in `kind`.
    pub kind: String,
    /// The path segment.
    pub plural: String,
    /// The kind that owns it, for child kinds.
    pub parent: Option<String>,
    pub on_parent_delete: DeletePolicy,
    /// The adapters that must report before a resource counts as reconciled, in the order of their conditions. Without
    /// any, it is never reconciled, and is deleted immediately.
    pub required_adapters: Vec<String>,
    pub name_bytes_min: usize,
    pub name_bytes_max: usize,
    pub references: Vec<ReferenceRule>,
    /// The schema of its specs; unset if any spec is accepted.
    pub spec_schema: Option<SpecSchema>,
    /// The rules for further conditions, if there are any.
    pub rules: Option<Arc<KindRules>>,
}

impl Entity {
    /// Adds every violation of the kind's schema by a spec.
    pub fn check_spec(&self, spec: &Map<String, Value>, violations: &mut Violations) {
        if let Some(schema) = &self.spec_schema {
            schema.check(spec, violations);
        }
    }

    /// Whether it requires adapters.
    pub fn is_reconcilable(&self) -> bool {
        !self.required_adapters.is_empty()
    }

    /// Whether the kind requires adapters, but not this one: `Reconciled` ignores its reports.
    pub fn ignores(&self, adapter: &str) -> bool {
        self.is_reconcilable() && !self.required_adapters.iter().any(|name| name == adapter)
    }
}

/// All kinds of this service, in the order of the configuration. Made by [`super::entity_config::registry`], which
/// checks them against each other.
#[derive(Debug, Clone, Default)]
pub struct EntityRegistry {
    entities: Vec<Entity>,
    by_kind: HashMap<String, usize>,
    with_rules: Vec<String>,
}

impl EntityRegistry {
    /// Indexes checked kinds.
    pub(super) fn new(entities: Vec<Entity>) -> Self {
        let kinds = entities.iter().enumerate();
        let by_kind = kinds.map(|(at, e)| (e.kind.clone(), at)).collect();
        let with_rules = entities.iter().filter(|e| e.rules.is_some());
        let with_rules = with_rules.map(|e| e.kind.clone()).collect();
        Self {
            entities,
            by_kind,
            with_rules,
        }
    }

    pub(super) fn set_spec_schema(&mut self, kind: &str, schema: SpecSchema) {
        if let Some(&at) = self.by_kind.get(kind) {
            self.entities[at].spec_schema = Some(schema);
        }
    }

    pub fn get(&self, kind: &str) -> Option<&Entity> {
        self.by_kind.get(kind).map(|&at| &self.entities[at])
    }

    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    pub fn children_of(&self, kind: &str) -> impl Iterator<Item = &Entity> {
        let owned = move |e: &&Entity| e.parent.as_deref() == Some(kind);
        self.entities.iter().filter(owned)
    }

    /// Whether active resources of kind `child` prevent the deletion of their owner of kind `parent`.
    pub fn restricts(&self, parent: &str, child: &str) -> bool {
        let is_it = |e: &Entity| e.kind == child && e.on_parent_delete == DeletePolicy::Restrict;
        self.children_of(parent).any(is_it)
    }

    /// How many levels of children resources of `kind` may have.
    pub fn levels_below(&self, kind: &str) -> usize {
        let below = |child: &Entity| 1 + self.levels_below(&child.kind);
        self.children_of(kind).map(below).max().unwrap_or(0)
    }

    /// How many owners resources of `kind` have: the order in which rows are locked.
    pub fn depth(&self, kind: &str) -> usize {
        match self.get(kind).and_then(|e| e.parent.as_deref()) {
            Some(parent) => 1 + self.depth(parent),
            None => 0,
        }
    }

    /// The path of a resource: below its owner for child kinds, one level deep, as routes are
    /// (`docs/decisions/0013-nested-hrefs.md`).
    pub fn href(&self, kind: &str, id: ResourceId, owner: Option<ResourceId>) -> String {
        let entity = self.get(kind);
        let parent = entity.and_then(|e| e.parent.as_deref());
        match (parent.zip(owner), entity) {
            (Some((parent, owner)), Some(entity)) => {
                let owner = self.flat_href(parent, owner);
                format!("{owner}/{}/{id}", entity.plural)
            }
            _ => self.flat_href(kind, id),
        }
    }

    /// The path of a resource without its owner's. A kind that is no longer configured is still available among all
    /// resources.
    pub fn flat_href(&self, kind: &str, id: ResourceId) -> String {
        let plural = self.get(kind).map_or("resources", |e| &e.plural);
        format!("{PATHS_BASE}/{plural}/{id}")
    }

    pub fn kinds_with_rules(&self) -> &[String] {
        &self.with_rules
    }
}

//! Finds faults of schemas that a validator would accept: misspelt keywords, which have no effect, useless references,
//! and schemas that cost a small spec much time.
//!
//! The validator may have to check a value against many schemas: a schema, its references, its alternatives. If two
//! alternatives describe the same member, it checks the member's value against both of their schemas, and so on at
//! each deeper level. With a schema that refers to itself in two alternatives, the work doubles with every level of
//! the spec. So this module counts the schemas of one value along every path, to the deepest level of specs. Nothing
//! else limits that work: the validator has no budget, and a spec of 1 KiB can have 50 levels.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::keywords::{Applies, COMPONENTS, below, find, is_known, split};
use crate::domain::shown;

/// Schemas that one value of a spec may have to fit at most, however deep in the spec it is.
pub const FITTED_MAX: usize = 250;
/// Levels of bodies at most.
const LEVELS_MAX: usize = 64;

/// The fault, and its place.
pub(super) type Fault = (String, String);

/// The facts of a checked schema and all its references.
pub(super) struct Sound {
    /// The components in use.
    pub(super) components: BTreeSet<String>,
    /// Number of schemas that one value has to fit, at most.
    pub(super) fitted: usize,
}

/// Checks a component and everything that it refers to.
///
/// # Errors
///
/// The first fault.
pub(super) fn check(schemas: &Map<String, Value>, name: &str, is_30: bool) -> Result<Sound, Fault> {
    let mut graph = Graph {
        schemas,
        is_30,
        nodes: BTreeMap::new(),
    };
    graph.add_all(name)?;
    let components = graph
        .nodes
        .keys()
        .map(|pointer| split(pointer).0.to_owned());
    let components = components.collect();
    let fitted = graph.fitted()?;
    Ok(Sound { components, fitted })
}

/// Every schema by its place below `components.schemas`.
struct Graph<'a> {
    schemas: &'a Map<String, Value>,
    is_30: bool,
    nodes: BTreeMap<String, Node>,
}

/// The schemas that follow from one, by their places.
#[derive(Default)]
struct Node {
    /// Of the same value.
    same: Vec<String>,
    /// Of members with these names.
    members: BTreeMap<String, Vec<String>>,
    /// Of members with other names.
    others: Vec<String>,
    /// Of members with any name.
    any: Vec<String>,
    /// Of elements.
    elements: Vec<String>,
}

fn fault(pointer: &str, why: impl Into<String>) -> Fault {
    (why.into(), format!("/components/schemas/{pointer}"))
}

impl Graph<'_> {
    fn add_all(&mut self, name: &str) -> Result<(), Fault> {
        let mut waiting = vec![name.to_owned()];
        while let Some(pointer) = waiting.pop() {
            if self.nodes.contains_key(&pointer) {
                continue;
            }
            // The validator reports a missing target.
            let node = match find(self.schemas, &pointer) {
                Some(Value::Object(keywords)) => self.node(keywords, &pointer)?,
                _ => Node::default(),
            };
            let named = node.members.values().flatten();
            let all = named.chain(&node.same).chain(&node.others).chain(&node.any);
            waiting.extend(all.chain(&node.elements).cloned());
            self.nodes.insert(pointer, node);
        }
        Ok(())
    }

    fn node(&self, keywords: &Map<String, Value>, at: &str) -> Result<Node, Fault> {
        let mut node = Node::default();
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            let Some(target) = reference.strip_prefix(COMPONENTS) else {
                let why = format!(
                    "the reference `{}` does not lead to `{COMPONENTS}…` of this document",
                    shown(reference)
                );
                return Err(fault(&format!("{at}/$ref"), why));
            };
            node.same.push(target.to_owned());
            if self.is_30 {
                // Keywords beside it do not count.
                return Ok(node);
            }
        }
        if let Some(name) = keywords.keys().find(|name| !is_known(name, self.is_30)) {
            return Err(fault(&format!("{at}/{name}"), self.unknown(name)));
        }
        for (applies, place) in below(keywords) {
            let pointer = format!("{at}{place}");
            match applies {
                Applies::Same => node.same.push(pointer),
                Applies::Member => {
                    let member = place.rsplit('/').next().unwrap_or_default();
                    node.members
                        .entry(member.to_owned())
                        .or_default()
                        .push(pointer);
                }
                Applies::OtherMembers => node.others.push(pointer),
                Applies::AnyMember => node.any.push(pointer),
                Applies::Elements => node.elements.push(pointer),
                Applies::Nothing => {}
            }
        }
        Ok(node)
    }

    fn unknown(&self, name: &str) -> String {
        if name == "nullable" && !self.is_30 {
            return "`nullable` is of OpenAPI 3.0: here say `type: [\"string\", \"null\"]`"
                .to_owned();
        }
        format!(
            "`{}` is not a keyword of schemas: correct it, or begin it with `x-`",
            shown(name)
        )
    }

    /// Number of schemas that one value has to fit at most, over all ways down.
    fn fitted(&self) -> Result<usize, Fault> {
        let mut unfolded = BTreeMap::new();
        for pointer in self.nodes.keys() {
            self.unfold(pointer, &mut unfolded, &mut Vec::new())?;
        }
        let mut fitted: BTreeMap<&str, usize> = unfolded
            .iter()
            .map(|(pointer, all)| (*pointer, all.len()))
            .collect();
        for _ in 0..LEVELS_MAX {
            let next: BTreeMap<_, _> = unfolded
                .iter()
                .map(|(pointer, all)| (*pointer, self.one_level_more(all, &fitted)))
                .collect();
            if let Some((pointer, _)) = next.iter().find(|(_, count)| **count > FITTED_MAX) {
                let why = format!(
                    "a value could have to fit more than {FITTED_MAX} schemas at once: let fewer alternatives describe the same member"
                );
                return Err(fault(pointer, why));
            }
            if next == fitted {
                break;
            }
            fitted = next;
        }
        Ok(fitted.values().copied().max().unwrap_or(1))
    }

    /// All schemas that the value of one has to fit, itself included, each as often as it counts.
    fn unfold<'a>(
        &'a self,
        pointer: &'a str,
        unfolded: &mut BTreeMap<&'a str, Vec<&'a str>>,
        under_way: &mut Vec<&'a str>,
    ) -> Result<(), Fault> {
        if unfolded.contains_key(pointer) {
            return Ok(());
        }
        if under_way.contains(&pointer) {
            return Err(fault(
                pointer,
                "it refers to itself without going down into the value",
            ));
        }
        under_way.push(pointer);
        let mut all = vec![pointer];
        for next in self
            .nodes
            .get(pointer)
            .into_iter()
            .flat_map(|node| &node.same)
        {
            self.unfold(next, unfolded, under_way)?;
            all.extend(unfolded.get(next.as_str()).into_iter().flatten());
            if all.len() > FITTED_MAX {
                let why =
                    format!("a value would have to fit more than {FITTED_MAX} schemas at once");
                return Err(fault(pointer, why));
            }
        }
        under_way.pop();
        unfolded.insert(pointer, all);
        Ok(())
    }

    /// Number of schemas that a value, or one a level below it, has to fit. `all` are those of the value, and `fitted`
    /// has the numbers of all schemas for a level less.
    fn one_level_more(&self, all: &[&str], fitted: &BTreeMap<&str, usize>) -> usize {
        let nodes: Vec<_> = all
            .iter()
            .filter_map(|pointer| self.nodes.get(*pointer))
            .collect();
        let sum = |pointers: &[String]| -> usize {
            let counts = pointers
                .iter()
                .map(|p| fitted.get(p.as_str()).copied().unwrap_or(1));
            counts.fold(0, usize::saturating_add)
        };
        let of_member = |name: Option<&str>| {
            let counts = nodes.iter().map(|node| {
                let own = name.and_then(|name| node.members.get(name));
                sum(own.unwrap_or(&node.others)).saturating_add(sum(&node.any))
            });
            counts.fold(0, usize::saturating_add)
        };
        let names: BTreeSet<_> = nodes.iter().flat_map(|node| node.members.keys()).collect();
        let members = names.into_iter().map(|name| of_member(Some(name))).max();
        let elements = nodes
            .iter()
            .map(|node| sum(&node.elements))
            .fold(0, usize::saturating_add);
        [all.len(), members.unwrap_or(0), of_member(None), elements]
            .into_iter()
            .max()
            .unwrap_or(1)
    }
}

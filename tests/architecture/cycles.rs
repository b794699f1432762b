//! Siblings that name each other in a circle: neither can be understood, moved or tested without the other.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Edge, ModulePath, Modules};

/// Every circle of siblings, as `parent: a → b → a`, in order.
pub(crate) fn cycles(modules: &Modules) -> Vec<String> {
    let mut siblings: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for Edge { from, to } in modules.edges() {
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        // One of them is the other's parent.
        let (Some(one), Some(other)) = (from.get(common), to.get(common)) else {
            continue;
        };
        let names = siblings.entry(from[..common].to_vec()).or_default();
        names.entry(one.clone()).or_default().insert(other.clone());
    }
    let of_parent = |(parent, names): (ModulePath, _)| {
        let parent = parent.join("::");
        components(&names)
            .into_iter()
            .map(move |circle| format!("{parent}: {}", circle.join(", ")))
    };
    siblings.into_iter().flat_map(of_parent).collect()
}

/// Groups of two or more names of which each leads to each.
fn components(names: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let mut grouped: BTreeSet<&String> = BTreeSet::new();
    let mut groups = Vec::new();
    for name in names.keys() {
        if grouped.contains(name) {
            continue;
        }
        let reached = reachable(names, name);
        let leads_back = |other: &&String| reachable(names, other).contains(name);
        let group: Vec<_> = reached.iter().copied().filter(leads_back).collect();
        if group.len() > 1 {
            grouped.extend(&group);
            groups.push(group.into_iter().cloned().collect());
        }
    }
    groups
}

fn reachable<'a>(
    names: &'a BTreeMap<String, BTreeSet<String>>,
    start: &String,
) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = names.get(start).into_iter().flatten().collect();
    while let Some(name) = next.pop() {
        if reached.insert(name) {
            next.extend(names.get(name).into_iter().flatten());
        }
    }
    reached
}

#[test]
fn a_planted_circle_is_found() {
    let texts = [
        ("", "mod app; mod http; pub use http::answer;"),
        ("app", "use super::answer; pub fn run() { answer() }"),
        ("http", "pub fn answer() { crate::app::run() }"),
        ("storage", "use crate::app;"),
    ];
    assert_eq!(cycles(&Modules::of_texts(&texts)), [": app, http"]);
    let texts = [
        ("http", ""),
        ("http::a", "pub mod deep;"),
        (
            "http::a::deep",
            "fn f() { format!(\"{}\", super::super::b::NAME); }",
        ),
        ("http::b", "pub const NAME: &str = \"b\"; use super::c::*;"),
        ("http::c", "use super::a::deep;"),
    ];
    assert_eq!(cycles(&Modules::of_texts(&texts)), ["http: a, b, c"]);
}

#[test]
fn what_only_looks_like_a_circle_is_none() {
    let texts = [
        ("", "mod a; mod b;"),
        (
            "a",
            "use crate::b::B; #[cfg(test)] mod tests { use crate::b; } pub struct A;",
        ),
        (
            "b",
            "use std::a; pub struct B; #[cfg(test)] use crate::a::A;",
        ),
        ("parent", "mod child; fn f() { child::g() }"),
        ("parent::child", "use super::f; pub fn g() {}"),
    ];
    assert!(cycles(&Modules::of_texts(&texts)).is_empty());
}

//! Public types by name: a name stands for one concept in the whole workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, iter};

use syn::{Attribute, Ident, Item, Visibility};

use crate::modules::is_test;
use crate::{crates, is_for_tests, rust_files};

/// Names of several public types, each with the concept that all of them are.
const SHARED: &[(&str, &str)] = &[
    ("Args", "the command line of a program"),
    ("Command", "a command of a program"),
    ("ConfigCommand", "a command of a program about its settings"),
    ("Error", "the failures of a crate or layer"),
    (
        "Loaded",
        "settings with their sources and errors: each program names the type of its own",
    ),
    (
        "Page",
        "a page of a list, as the server writes it and as a client reads it",
    ),
    (
        "PageToken",
        "where the next page of a list begins, for the server and for a client",
    ),
    (
        "Report",
        "the report of an adapter, as the service stores it and as an adapter writes it",
    ),
    (
        "Resource",
        "a resource of the API, as the service stores it and as an adapter reads it",
    ),
    ("Settings", "the settings of a program or of a part"),
];

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for name in public_types(&syn::parse_file(&text).unwrap().items) {
            found.entry(name).or_default().push(file.clone());
        }
    }
    assert!(
        found.contains_key("ResourceSnapshot"),
        "types are not found"
    );
    found.retain(|_, files| files.len() > 1);
    let shared: BTreeMap<_, _> = SHARED.iter().copied().collect();
    let several: BTreeMap<_, _> = found
        .iter()
        .filter(|(name, _)| !shared.contains_key(name.as_str()))
        .collect();
    assert!(several.is_empty(), "rename them: {several:#?}");
    let unshared: Vec<_> = shared
        .keys()
        .filter(|name| !found.contains_key(**name))
        .collect();
    assert!(unshared.is_empty(), "remove from SHARED: {unshared:?}");
}

#[test]
fn only_public_types_outside_of_tests_are_found() {
    let text = "
        pub struct A; pub enum B {} pub trait C {} pub type D = u8; struct E; pub(crate) struct F; pub fn g() {}
        pub mod inner { pub struct H; }
        #[cfg(test)] mod tests { pub struct I; }
        #[cfg(test)] pub struct J;
    ";
    let items = syn::parse_file(text).unwrap().items;
    assert_eq!(public_types(&items), ["A", "B", "C", "D", "H"]);
}

/// The sources of every library and program, without their tests.
fn sources() -> impl Iterator<Item = PathBuf> {
    let folders = crates().into_iter().map(|folder| folder.join("src"));
    let files = folders.flat_map(|folder| rust_files(folder.to_str().unwrap()));
    files.filter(|file| !is_for_tests(file))
}

/// The names of the public types among items, those in inline modules included.
fn public_types(items: &[Item]) -> Vec<String> {
    items.iter().flat_map(names).collect()
}

fn names(item: &Item) -> Vec<String> {
    match item {
        Item::Enum(it) => name(&it.attrs, &it.vis, &it.ident),
        Item::Struct(it) => name(&it.attrs, &it.vis, &it.ident),
        Item::Trait(it) => name(&it.attrs, &it.vis, &it.ident),
        Item::Type(it) => name(&it.attrs, &it.vis, &it.ident),
        Item::Mod(it) if !is_test(&it.attrs) => {
            let items = it.content.iter().flat_map(|(_, items)| items);
            items.flat_map(names).collect()
        }
        _ => Vec::new(),
    }
}

fn name(attributes: &[Attribute], visibility: &Visibility, name: &Ident) -> Vec<String> {
    let is_public = matches!(visibility, Visibility::Public(_)) && !is_test(attributes);
    iter::once(name.to_string()).filter(|_| is_public).collect()
}

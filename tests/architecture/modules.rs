//! The modules of a crate and which of them name which, read from the sources.
//!
//! A path is followed to the module that defines its last name: through `crate`, `self` and `super`, through
//! imports and re-exports, and within macros those that start with `crate` or `super`. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// A module by the names on its way from the crate's root, which itself is empty.
pub(crate) type ModulePath = Vec<String>;

/// A crate's modules.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<ModulePath, Module>);

#[derive(Default)]
struct Module {
    /// Every path that the module names, relative to itself.
    named: BTreeSet<Vec<String>>,
    /// What `use` brings in: its name here, and its path.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths that are imported as one name.
    globs: Vec<Vec<String>>,
}

/// A module that names something of another module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: ModulePath,
    pub(crate) to: ModulePath,
}

impl Modules {
    /// Reads a crate from the file of its root.
    pub(crate) fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(root, &root.parent().unwrap().join(""), Vec::new());
        modules
    }

    /// Modules of these texts: for tests of the finder itself.
    pub(crate) fn of_texts(texts: &[(&str, &str)]) -> Self {
        let mut modules = Self::default();
        for (path, text) in texts {
            let path = path.split("::").filter(|name| !name.is_empty());
            let file = syn::parse_file(text).unwrap();
            modules.add(path.map(str::to_owned).collect(), &file.items);
        }
        modules
    }

    /// Which module names something of which other one.
    pub(crate) fn edges(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (from, module) in &self.0 {
            for named in &module.named {
                let target = self.resolve(from, named, 0);
                if let Some(to) = target.filter(|to| to != from) {
                    let from = from.clone();
                    edges.insert(Edge { from, to });
                }
            }
        }
        edges
    }

    fn read_file(&mut self, file: &Path, folder: &Path, path: ModulePath) {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let parsed = syn::parse_file(&text).unwrap();
        for item in &parsed.items {
            let Item::Mod(child) = item else { continue };
            if is_test(&child.attrs) || child.content.is_some() {
                continue;
            }
            let name = child.ident.to_string();
            let below = folder.join(&name);
            let flat = folder.join(format!("{name}.rs"));
            let file = if flat.exists() {
                flat
            } else {
                below.join("mod.rs")
            };
            let path = [path.as_slice(), &[name]].concat();
            self.read_file(&file, &below, path);
        }
        self.add(path, &parsed.items);
    }

    fn add(&mut self, path: ModulePath, items: &[Item]) {
        let mut module = Module::default();
        for item in items {
            match item {
                Item::Mod(child) if is_test(&child.attrs) => {}
                Item::Mod(child) => {
                    if let Some((_, items)) = &child.content {
                        let path = [path.as_slice(), &[child.ident.to_string()]].concat();
                        self.add(path, items);
                    }
                }
                other => module.visit_item(other),
            }
        }
        self.0.insert(path, module);
    }

    /// The module that defines what a path leads to; none for what other crates and the language define.
    fn resolve(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        // Imports of imports end somewhere, unless they go round.
        if depth > 16 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), rest),
            _ => return self.find(from, path, depth),
        };
        while rest.first().is_some_and(|name| name == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        if rest.is_empty() {
            return Some(at);
        }
        // What is no module and no import of this module is defined in it.
        Some(self.find(&at, rest, depth).unwrap_or(at))
    }

    fn find(&self, at: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let child = [at.as_slice(), std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return Some(match rest {
                [] => child,
                rest => self.find(&child, rest, depth).unwrap_or(child),
            });
        }
        let module = self.0.get(at)?;
        if let Some(import) = module.imports.get(first) {
            return self.resolve(at, &[import.as_slice(), rest].concat(), depth + 1);
        }
        let through = |glob: &Vec<String>| {
            let source = self.resolve(at, glob, depth + 1)?;
            self.find(&source, path, depth + 1)
        };
        module.globs.iter().find_map(through)
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).is_some_and(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.named.insert(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        let text = call.tokens.to_string().replace(' ', "");
        for start in ["crate::", "super::"] {
            for (index, _) in text.match_indices(start) {
                let is_name = |c: char| c.is_alphanumeric() || "_:".contains(c);
                let end = text[index..]
                    .find(|c| !is_name(c))
                    .map_or(text.len(), |n| index + n);
                let names = text[index..end].split("::").filter(|name| !name.is_empty());
                self.named.insert(names.map(str::to_owned).collect());
            }
        }
    }
}

impl Module {
    fn import(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        let (name, known_as) = match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
                before.pop();
                return;
            }
            UseTree::Group(group) => {
                group
                    .items
                    .iter()
                    .for_each(|tree| self.import(before, tree));
                return;
            }
            UseTree::Glob(_) => {
                self.named.insert(before.clone());
                self.globs.push(before.clone());
                return;
            }
            UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
        };
        let mut path = before.clone();
        let mut known_as = known_as;
        if name == "self" {
            if known_as == "self" {
                known_as = before.last().cloned().unwrap_or_default();
            }
        } else {
            path.push(name);
        }
        self.named.insert(path.clone());
        self.imports.insert(known_as, path);
    }
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}

pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Ok(list) = attribute.meta.require_list() else {
            return false;
        };
        // `cfg(test)`, and what fuzz targets share with tests.
        let text = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg")
            && (text.starts_with("test") || text == r#"any(test,feature="laws")"#)
    })
}

//! Links lead somewhere, and the lists of pages are complete.

use std::fs;
use std::path::{Path, PathBuf};

use hyperfleet_testkit::files_below;

use crate::documents;

/// Links between documents, with their anchors, relative to the document that they stand in.
#[test]
fn every_link_of_a_document_leads_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap().join(path),
            };
            let is_there = target.exists() && (anchor.is_empty() || has_anchor(&target, anchor));
            if !is_there {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// The book has every page, and each of them once.
#[test]
fn the_summary_names_every_page_once() {
    let summary = fs::read_to_string("docs/SUMMARY.md").unwrap();
    let mut named: Vec<PathBuf> = links(&summary)
        .filter(|link| !link.starts_with("../"))
        .map(|link| Path::new("docs").join(link))
        .collect();
    named.sort();
    let mut pages = files_below(Path::new("docs"));
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    pages.retain(|path| !path.ends_with("SUMMARY.md"));
    pages.sort();
    assert_eq!(named, pages);
}

/// A record that the list leaves out is not found.
#[test]
fn the_list_of_decisions_names_every_record() {
    let list = fs::read_to_string("docs/decisions/index.md").unwrap();
    let of_records = links(&list).filter(|link| !link.starts_with(".."));
    let mut named: Vec<_> = of_records.map(PathBuf::from).collect();
    named.sort();
    let records = files_below(Path::new("docs/decisions"));
    let records = records
        .into_iter()
        .map(|path| PathBuf::from(path.file_name().unwrap()));
    let mut records: Vec<_> = records
        .filter(|name| name != Path::new("index.md"))
        .collect();
    records.sort();
    assert_eq!(named, records);
}

/// `docs/….md` and `docs/….md#section`, as documents, comments and messages name them: from the root of the repository.
#[test]
fn every_document_that_is_named_is_there() {
    let mut named = documents();
    for folder in [
        "src", "crates", "tests", "examples", "charts", "deploy", "scripts",
    ] {
        named.extend(files_below(Path::new(folder)));
    }
    named.extend(["Makefile", "Cargo.toml", "Dockerfile", "docker-compose.yml"].map(PathBuf::from));
    let mut broken = Vec::new();
    let mut count = 0;
    for file in named {
        // What is no text names nothing.
        let text = fs::read_to_string(&file).unwrap_or_default();
        for path in names(&text) {
            count += 1;
            let (path, anchor) = path.split_once('#').unwrap_or((&path, ""));
            let page = Path::new(path);
            let is_there = page.exists() && (anchor.is_empty() || has_anchor(page, anchor));
            if !is_there {
                broken.push(format!("{}: {path}#{anchor}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    assert!(count > 50, "it looks at the wrong places: {count}");
}

/// What stands between `](` and `)`, unless it is elsewhere.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("](").skip(1);
    let links = behind.filter_map(|rest| rest.split_once(')'));
    let links = links.map(|(link, _)| link);
    links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
}

fn has_anchor(document: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(document).unwrap();
    text.lines().any(|line| {
        let title = line.trim_start_matches('#');
        title.len() < line.len() && slug(title.trim()) == anchor
    })
}

/// A heading as links name it.
fn slug(title: &str) -> String {
    let title = title.to_lowercase();
    let characters = title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    characters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn names(text: &str) -> Vec<String> {
    let folder = "docs/";
    let behind = text.split(folder).skip(1);
    let name = |rest: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (stem, _) = rest[..end].split_once(".md")?;
        let behind = &rest[stem.len() + ".md".len()..];
        let anchor = behind.strip_prefix('#').unwrap_or_default();
        let is_part = |c: char| c.is_alphanumeric() || "-_".contains(c);
        let end = anchor.find(|c| !is_part(c)).unwrap_or(anchor.len());
        Some(format!("{folder}{stem}.md#{}", &anchor[..end]))
    };
    behind.filter_map(name).collect()
}

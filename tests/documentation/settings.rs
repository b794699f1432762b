//! Defaults of settings in prose are those of the reference, which tests hold to the code.

use std::collections::BTreeMap;
use std::fs;

use crate::quantities::quantities;
use crate::{documents, joined, lines};

const REFERENCES: [&str; 2] = [
    "docs/reference/configuration.md",
    "docs/reference/fleetd-settings.md",
];

/// `` `agent_ttl` (30 s) `` says that the default is 30 s.
#[test]
fn defaults_behind_the_names_of_settings_are_right() {
    let defaults = defaults();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let prose = joined(&lines(&text, false).collect::<Vec<_>>().join("\n"));
        for (key, said) in named_values(&prose) {
            let (Some(default), Some(said)) = (defaults.get(key), quantities(said).pop()) else {
                continue;
            };
            count += 1;
            if quantities(default).iter().sum::<u64>() != said {
                wrong.push(format!("{}: {key} is {default}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 5, "it looks at the wrong places: {count}");
}

/// The defaults of both programs, by the names of their settings.
fn defaults() -> BTreeMap<String, String> {
    let mut defaults = BTreeMap::new();
    for reference in REFERENCES {
        let text = fs::read_to_string(reference).unwrap();
        for row in text.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<_> = row.split(" | ").collect();
            let [key, .., default, _, help] = cells.as_slice() else {
                continue;
            };
            let unit = if help.contains(", in seconds") {
                " s"
            } else {
                ""
            };
            let key = key.trim_matches(['|', ' ', '`']).to_owned();
            defaults.insert(key, default.trim_matches('`').to_owned() + unit);
        }
    }
    defaults
}

/// A name in backticks, and the number in parentheses right behind it.
fn named_values(prose: &str) -> impl Iterator<Item = (&str, &str)> {
    let spots = prose.match_indices("` (");
    spots.filter_map(|(at, behind)| {
        let (_, key) = prose[..at].rsplit_once('`')?;
        let (said, _) = prose[at + behind.len()..].split_once(')')?;
        let is_number = said.starts_with(|c: char| c.is_ascii_digit());
        is_number.then_some((key, said))
    })
}

//! Circles of units that replace each other, of any length. Each unit of a circle would have to leave for
//! another, so the write that closes a circle is refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::fleet_section::{FleetSection, SECTION};
use super::glob::Glob;
use super::name::NameParts;
use super::option::UnitOption;

/// Units that replace others, with the patterns of their `Replaces`. No other unit can be part of a circle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replacing(BTreeMap<String, Vec<Glob>>);

impl Replacing {
    /// The patterns of `Replaces` in a unit's file.
    pub fn patterns(name: &str, options: &[UnitOption]) -> Vec<Glob> {
        // Most units have none.
        if !options.iter().any(|option| option.section == SECTION) {
            return Vec::new();
        }
        let section = FleetSection::of(options);
        section.requirements(NameParts::of(name)).replaces
    }

    pub fn set(&mut self, name: &str, options: &[UnitOption]) {
        let patterns = Self::patterns(name, options);
        if patterns.is_empty() {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), patterns);
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The shortest circle that a unit closes with these patterns, starting with the unit: each replaces the
    /// next, and the last replaces the first. A unit that matches its own pattern is no circle.
    pub fn circle<'a>(&'a self, name: &'a str, patterns: &'a [Glob]) -> Option<Vec<&'a str>> {
        let mut unreached: BTreeSet<&str> = self.0.keys().map(String::as_str).collect();
        unreached.remove(name);
        let mut replaced_by: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([(name, patterns)]);
        while let Some((unit, patterns)) = queue.pop_front() {
            if unit != name && patterns.iter().any(|pattern| pattern.matches(name)) {
                let mut circle = vec![unit];
                while let Some(before) = replaced_by.get(circle[circle.len() - 1]) {
                    circle.push(before);
                }
                circle.reverse();
                return Some(circle);
            }
            for pattern in patterns {
                // Each unit is reached once, so the search ends.
                for next in matching(&unreached, pattern) {
                    unreached.remove(next);
                    replaced_by.insert(next, unit);
                    queue.push_back((next, &self.0[next]));
                }
            }
        }
        None
    }
}

fn matching<'a>(names: &BTreeSet<&'a str>, pattern: &'a Glob) -> Vec<&'a str> {
    let names = names.range(pattern.prefix()..);
    let names = names.take_while(|name| name.starts_with(pattern.prefix()));
    names
        .filter(|name| pattern.matches(name))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replacing(units: &[(&str, &[&str])]) -> Replacing {
        let globs = |texts: &[&str]| texts.iter().map(|text| Glob::new(*text)).collect();
        let units = units
            .iter()
            .map(|(name, texts)| ((*name).to_owned(), globs(texts)));
        Replacing(units.collect())
    }

    #[test]
    fn the_shortest_circle_is_named_in_order() {
        let known = replacing(&[
            ("b.service", &["c.service", "d*"]),
            ("c.service", &["x.service"]),
            ("d1.service", &["e.service"]),
            ("d2.service", &["e.service"]),
            ("e.service", &["[a-b].service"]),
        ]);
        for (patterns, circle) in [
            (
                &["b.service"][..],
                Some(&["a.service", "b.service", "d1.service", "e.service"][..]),
            ),
            (&["*"], Some(&["a.service", "e.service"])),
            (&["a.service"], None),
            (&["c.service", "x.service"], None),
            (&[], None),
        ] {
            let patterns: Vec<_> = patterns.iter().map(|text| Glob::new(*text)).collect();
            let found = known.circle("a.service", &patterns);
            assert_eq!(found.as_deref(), circle, "{patterns:?}");
        }
    }

    #[test]
    fn the_file_names_the_replaced_units() {
        let option = |name: &str, value: &str| UnitOption {
            section: SECTION.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let mut known = Replacing::default();
        known.set("web@2.service", &[option("Replaces", "%p@1.service")]);
        let patterns = [Glob::new("web@2.service")];
        assert!(known.circle("web@1.service", &patterns).is_some());
        known.set("web@2.service", &[option("Conflicts", "web@1.service")]);
        assert_eq!(known, Replacing::default());
    }

    proptest! {
        /// Only units that close no circle are added, so there is never one, whatever the order.
        #[test]
        fn what_is_refused_is_what_closes_a_circle(
            units in prop::collection::vec((0_usize..7, prop::collection::vec(0_usize..9, 0..3)), 0..14),
        ) {
            let name = |number: usize| format!("u{number}");
            let pattern = |number: usize| match number {
                7 => Glob::new("u[0-2]"),
                8 => Glob::new("u?"),
                number => Glob::new(name(number)),
            };
            let mut known = Replacing::default();
            for (unit, patterns) in units {
                let (unit, patterns) = (name(unit), patterns.into_iter().map(pattern).collect::<Vec<_>>());
                let mut with = known.clone();
                with.0.insert(unit.clone(), patterns.clone());
                let circle = known.circle(&unit, &patterns);
                prop_assert_eq!(circle.is_some(), has_circle(&with), "{:?}", with);
                if circle.is_none() {
                    known = with;
                }
            }
        }
    }

    /// Repeatedly removes units that replace no remaining unit. What remains is on a circle or replaces units
    /// on one.
    fn has_circle(units: &Replacing) -> bool {
        let mut left = units.0.clone();
        loop {
            let names: Vec<_> = left.keys().cloned().collect();
            let before = left.len();
            left.retain(|unit, patterns| {
                let others = names.iter().filter(|other| *other != unit);
                others
                    .into_iter()
                    .any(|other| patterns.iter().any(|pattern| pattern.matches(other)))
            });
            if left.len() == before {
                return before > 0;
            }
        }
    }
}

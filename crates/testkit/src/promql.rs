//! Parses the names in Prometheus queries.

use std::collections::BTreeSet;

/// Prefixes of our metrics and recording rules, and of those of every process and of Prometheus itself.
const PREFIXES: &[&str] = &["hyperfleet_", "fleet_", "namespace_job", "process_"];
const NAMES: &[&str] = &["up", "ALERTS"];

/// Selectors of an expression, `name{labels}` or `name`, without repetitions.
pub(super) fn selectors(expression: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = expression;
    while let Some(start) = rest.find(is_name) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let labels = match after.strip_prefix('{') {
            Some(labels) => &after[..labels.find('}').unwrap() + 2],
            None => "",
        };
        let is_ours = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_ours || NAMES.contains(&name) {
            found.insert(format!("{name}{labels}"));
        }
        rest = &after[labels.len()..];
    }
    found
}

/// Names of the metrics and recording rules that an expression reads.
pub fn metric_names(expression: &str) -> BTreeSet<String> {
    let name = |selector: String| selector.split('{').next().unwrap().to_owned();
    selectors(expression).into_iter().map(name).collect()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_:".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_found_with_their_labels() {
        let expression = r#"sum by (up_to, job) (rate(hyperfleet_a_total{b="x (up)",c=~"y|z"}[5m])) / on (job) up
            or namespace_job:hyperfleet_b:rate5m * 0.5 and fleet_c{} unless fleet_c"#;
        let expected = [
            "fleet_c",
            "fleet_c{}",
            r#"hyperfleet_a_total{b="x (up)",c=~"y|z"}"#,
            "namespace_job:hyperfleet_b:rate5m",
            "up",
        ];
        assert_eq!(selectors(expression), expected.map(str::to_owned).into());
        let names = ["fleet_c", "hyperfleet_a_total", expected[3], "up"];
        assert_eq!(metric_names(expression), names.map(str::to_owned).into());
    }
}

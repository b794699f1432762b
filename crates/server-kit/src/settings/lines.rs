//! The lines of settings in a file, for messages. The parser of YAML does not give them: members are found by their
//! indentation. A member in `{…}` or `[…]` has the line of the member around it.

use std::collections::BTreeMap;

/// The line of each member, by its path: names, and numbers of items, with dots between them.
#[derive(Debug, Default)]
pub(super) struct Lines(BTreeMap<String, usize>);

/// A member or an item that the current line is below.
struct Step {
    column: usize,
    name: String,
    /// Of an item.
    index: Option<usize>,
}

impl FromIterator<(String, usize)> for Lines {
    fn from_iter<I: IntoIterator<Item = (String, usize)>>(lines: I) -> Self {
        Self(lines.into_iter().collect())
    }
}

impl Lines {
    pub(super) fn of_yaml(text: &str) -> Self {
        let (mut lines, mut above) = (Self::default(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            lines.read(line, number + 1, &mut above);
        }
        lines
    }

    /// A file with the line of the member at a path, if that is known.
    pub(super) fn located(&self, path: &str, file: &str) -> String {
        match self.find(path) {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        }
    }

    /// The line of the member at a path, or of the nearest one above it.
    fn find(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    fn read(&mut self, line: &str, number: usize, above: &mut Vec<Step>) {
        let mut text = line.trim_start();
        let mut column = line.len() - text.len();
        while let Some(rest) = item(text) {
            let before = above.iter().rev().find(|step| step.column <= column);
            let before = before.filter(|step| step.column == column);
            let index = before.and_then(|step| step.index).map_or(0, |at| at + 1);
            above.retain(|step| {
                step.column < column || step.column == column && step.index.is_none()
            });
            above.push(Step {
                column,
                name: index.to_string(),
                index: Some(index),
            });
            self.note(above, number);
            column += text.len() - rest.len();
            text = rest;
        }
        if let Some(name) = member(text) {
            above.retain(|step| step.column < column);
            above.push(Step {
                column,
                name: name.to_owned(),
                index: None,
            });
            self.note(above, number);
        }
    }

    fn note(&mut self, above: &[Step], number: usize) {
        let names: Vec<_> = above.iter().map(|step| step.name.as_str()).collect();
        self.0.entry(names.join(".")).or_insert(number);
    }
}

/// What follows the dash of an item.
fn item(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim_start())
}

/// The name of a member.
fn member(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once(':')?;
    let is_member = rest.is_empty() || rest.starts_with([' ', '\t']);
    let name = name.trim_end().trim_matches(['"', '\'']);
    let is_name = !name.is_empty() && !name.starts_with(['#', '{', '[']);
    (is_member && is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_indentation() {
        let text = "\
# server: not this one
server:
  port: 1   # host: nor this

  jwt:
    configs:
    - issuer_url: a
      header: b
    -
      issuer_url: c
  tls: {enabled: true,
    cert_file: x}
entities:
  - kind: A
    references:
      - ref_type: r
        min: 1
      - ref_type: s
  - kind: B
health:
  'port': 2
";
        let lines = Lines::of_yaml(text);
        for (path, line) in [
            ("server", Some(2)),
            ("server.port", Some(3)),
            ("server.jwt.configs.0.issuer_url", Some(7)),
            ("server.jwt.configs.0.header", Some(8)),
            ("server.jwt.configs.1", Some(9)),
            ("server.jwt.configs.1.issuer_url", Some(10)),
            ("server.tls.enabled", Some(11)),
            ("entities.0.kind", Some(14)),
            ("entities.0.references.0.min", Some(17)),
            ("entities.0.references.1.ref_type", Some(18)),
            ("entities.1.kind", Some(19)),
            ("health.port", Some(21)),
            ("metrics.port", None),
        ] {
            assert_eq!(lines.find(path), line, "{path}");
        }
    }
}

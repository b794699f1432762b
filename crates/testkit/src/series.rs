use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Series {
    /// All series of a scrape in Prometheus' text format.
    pub fn read(text: &str) -> Vec<Self> {
        let lines = text.lines();
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| Self::of(line).unwrap_or_else(|| panic!("no series: {line}")))
            .collect()
    }

    /// Whether it has all these labels.
    pub fn has(&self, labels: &[(&str, &str)]) -> bool {
        let has = |(name, value): &(&str, &str)| self.labels.get(*name).is_some_and(|v| v == value);
        labels.iter().all(has)
    }

    fn of(line: &str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, rest.strip_suffix('}')?),
            None => (series, ""),
        };
        let mut pairs = BTreeMap::new();
        let mut rest = labels;
        while let Some((name, after)) = rest.split_once("=\"") {
            let end = after.find('"')?;
            pairs.insert(name.to_owned(), after[..end].to_owned());
            rest = after[end + 1..].trim_start_matches(',');
        }
        Some(Self {
            name: name.to_owned(),
            labels: pairs,
            value: value.parse().ok()?,
        })
    }
}

/// The sum of all series of that name with these labels.
pub fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let all = Series::read(text).into_iter();
    all.filter(|series| series.name == name && series.has(labels))
        .map(|series| series.value)
        .sum()
}

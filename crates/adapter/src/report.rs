//! The report of an adapter on a resource.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::finding::{Finding, Truth};

/// Longest reason or message that the service accepts, in bytes. Longer ones are cut.
const REASON_BYTES_MAX: usize = 1024;
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// End of a text that was cut.
const CUT: &str = "…";

/// The report of an adapter on a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Whether the adapter has ordered everything that the resource needs.
    pub applied: Finding,
    /// Whether all of it exists and works.
    pub available: Finding,
    /// Whether the adapter and the systems that it depends on work.
    pub health: Finding,
    /// For a resource that is being deleted: whether nothing of it is left.
    pub finalized: Option<Finding>,
    /// The adapter's own conditions, by type.
    pub further: BTreeMap<String, Finding>,
    /// Data for other adapters and users.
    pub data: Map<String, Value>,
}

impl Report {
    /// A healthy report with these findings.
    fn healthy(applied: Finding, available: Finding, finalized: Option<Finding>) -> Self {
        Self {
            applied,
            available,
            health: Finding::yes("Healthy", "the adapter is well"),
            finalized,
            further: BTreeMap::new(),
            data: Map::new(),
        }
    }

    /// For an active resource: applied and healthy, and available as found.
    pub fn new(available: Finding) -> Self {
        let applied = Finding::yes("Applied", "all was ordered");
        Self::healthy(applied, available, None)
    }

    /// The adapter has nothing to do for a resource: every condition is true.
    pub fn not_applicable(message: impl Into<String>) -> Self {
        let finding = Finding::yes("NotApplicable", message);
        Self {
            health: finding.clone(),
            ..Self::healthy(finding.clone(), finding.clone(), Some(finding))
        }
    }

    /// For a resource that is being deleted: nothing of it is left.
    pub fn finalized(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::healthy(
            Finding::no("Removed", "nothing is ordered"),
            Finding::no("Removed", "nothing is left"),
            Some(Finding::yes(reason, message)),
        )
    }

    /// For a resource that is being deleted: something of it is left.
    pub fn finalizing(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::healthy(
            Finding::no("Removing", "nothing is ordered"),
            Finding::no("Removing", "it is being removed"),
            Some(Finding::no(reason, message)),
        )
    }

    /// The adapter failed: every condition is false, with the error as its message.
    pub fn failed(error: impl Into<String>, is_deleted: bool) -> Self {
        let finding = Finding::no("Error", error);
        Self {
            health: finding.clone(),
            ..Self::healthy(
                finding.clone(),
                finding.clone(),
                is_deleted.then_some(finding),
            )
        }
    }

    /// Whether nothing is in progress: the resource is available, or nothing of it is left.
    pub fn is_settled(&self) -> bool {
        let is_true = |finding: &Finding| finding.truth == Truth::True;
        match &self.finalized {
            Some(finalized) => is_true(finalized),
            None => is_true(&self.applied) && is_true(&self.available),
        }
    }

    pub fn with_data(mut self, data: Map<String, Value>) -> Self {
        self.data = data;
        self
    }

    /// The request body of the report.
    pub(crate) fn body(&self, adapter: &str, generation: i64, at: DateTime<Utc>) -> Value {
        let own = [
            ("Applied", &self.applied),
            ("Available", &self.available),
            ("Health", &self.health),
        ];
        let finalized = self.finalized.iter().map(|found| ("Finalized", found));
        let further = self.further.iter();
        let further = further.map(|(name, found)| (name.as_str(), found));
        let conditions = own.into_iter().chain(finalized).chain(further);
        json!({
            "adapter": adapter,
            "observed_generation": generation,
            "observed_time": at.to_rfc3339_opts(SecondsFormat::Micros, true),
            "conditions": conditions.map(|(name, found)| condition(name, found)).collect::<Vec<_>>(),
            "data": self.data,
        })
    }
}

/// A report as the service stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReport {
    /// Generation of the resource that it is about.
    pub generation: i64,
    pub report: Report,
}

#[derive(Deserialize)]
struct Stored {
    observed_generation: i64,
    conditions: Vec<StoredCondition>,
    #[serde(default)]
    data: Map<String, Value>,
}

#[derive(Deserialize)]
struct StoredCondition {
    #[serde(rename = "type")]
    name: String,
    status: Truth,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl StoredReport {
    /// # Errors
    /// A required member is missing or has a wrong type.
    pub(crate) fn read(item: Value) -> Result<Self, serde_json::Error> {
        let stored = Stored::deserialize(item)?;
        let findings = stored.conditions.into_iter().map(|condition| {
            let StoredCondition {
                name,
                status,
                reason,
                message,
            } = condition;
            let finding = Finding {
                truth: status,
                reason,
                message,
            };
            (name, finding)
        });
        let mut findings: BTreeMap<String, Finding> = findings.collect();
        let mut take = |name: &str| findings.remove(name);
        let missing = serde::de::Error::missing_field;
        let report = Report {
            applied: take("Applied").ok_or_else(|| missing("Applied"))?,
            available: take("Available").ok_or_else(|| missing("Available"))?,
            health: take("Health").ok_or_else(|| missing("Health"))?,
            finalized: take("Finalized"),
            further: findings,
            data: stored.data,
        };
        let generation = stored.observed_generation;
        Ok(Self { generation, report })
    }
}

fn condition(name: &str, found: &Finding) -> Value {
    json!({
        "type": name,
        "status": found.truth,
        "reason": cut(&found.reason, REASON_BYTES_MAX),
        "message": cut(&found.message, MESSAGE_BYTES_MAX),
    })
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max - CUT.len());
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_every_condition_once() {
        let mut report = Report::finalizing("UnitsRun", "2 units are left");
        let further = Finding::unknown("Later", "not looked at yet");
        report.further.insert("Rolled".to_owned(), further);
        let at = "2026-01-01T10:00:00.25Z".parse().unwrap();
        let body = report.body("fleet", 3, at);
        let conditions = body["conditions"].as_array().unwrap();
        let said = conditions
            .iter()
            .map(|c| format!("{}={}", c["type"], c["status"]).replace('"', ""));
        assert_eq!(
            said.collect::<Vec<_>>(),
            [
                "Applied=False",
                "Available=False",
                "Health=True",
                "Finalized=False",
                "Rolled=Unknown"
            ]
        );
        assert_eq!(body["observed_generation"], 3);
        assert_eq!(body["observed_time"], "2026-01-01T10:00:00.250000Z");
    }

    #[test]
    fn a_report_that_was_stored_is_read_as_it_was_sent() {
        let mut sent = Report::finalizing("UnitsRun", "2 units are left");
        let further = Finding::unknown("Later", "not looked at yet");
        sent.further.insert("Rolled".to_owned(), further);
        sent.data.insert("units".to_owned(), json!([1]));
        let at = "2026-01-01T10:00:00Z".parse().unwrap();
        let read = StoredReport::read(sent.body("fleet", 3, at)).unwrap();
        assert_eq!((read.generation, read.report), (3, sent));
        let partial = json!({"observed_generation": 1, "conditions": []});
        assert!(StoredReport::read(partial).is_err());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        for padding in 0..4 {
            let text = format!("{}{}", "x".repeat(padding), "é".repeat(1000));
            let short = cut(&text, 1024);
            assert!(short.len() <= 1024 && short.len() > 1020, "{}", short.len());
            assert!(short.ends_with("é…"));
        }
        assert_eq!(cut(&"x".repeat(1024), 1024).len(), 1024);
    }
}

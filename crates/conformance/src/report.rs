//! The results of a run, as a table and as JSON.

use std::fmt::{self, Write as _};

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    /// The server's response follows the rule.
    Holds,
    /// The server's response differs from the rule.
    Differs,
    /// The check can't run against this server.
    Skipped,
}

#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub id: String,
    pub outcome: CheckOutcome,
    pub rule: String,
    /// Where the rule is written.
    pub source: &'static str,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Method, path and body of the request with a different response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The response by the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The response of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The results of a run, in the order of the checks.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Name of the run, the prefix of the names of its resources.
    pub run: String,
    pub checks: Vec<Row>,
    /// Paths of resources that could not be removed.
    pub left_behind: Vec<String>,
    /// The run was interrupted before its last check.
    pub interrupted: bool,
}

impl RunReport {
    /// How many checks have this outcome.
    pub fn count(&self, outcome: CheckOutcome) -> usize {
        self.checks
            .iter()
            .filter(|row| row.outcome == outcome)
            .count()
    }

    /// The ids of the checks with this outcome.
    pub fn ids(&self, outcome: CheckOutcome) -> Vec<&str> {
        let rows = self.checks.iter().filter(|row| row.outcome == outcome);
        rows.map(|row| row.id.as_str()).collect()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            CheckOutcome::Holds => "holds",
            CheckOutcome::Differs => "DIFFERS",
            CheckOutcome::Skipped => "skipped",
        };
        write!(f, "{outcome:<8} {:<28} {}", self.id, self.rule)?;
        for (name, text) in [
            ("why", &self.reason),
            (
                "source",
                &self.request.as_ref().map(|_| self.source.to_owned()),
            ),
            ("request", &self.request),
            ("expected", &self.expected),
            ("answer", &self.answer),
        ] {
            if let Some(text) = text {
                write!(f, "\n           {name:<9}{text}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.checks {
            writeln!(f, "{row}")?;
        }
        f.write_str(&self.summary())
    }
}

impl RunReport {
    /// The last lines of the table.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "\n{} hold, {} differ, {} skipped",
            self.count(CheckOutcome::Holds),
            self.count(CheckOutcome::Differs),
            self.count(CheckOutcome::Skipped),
        );
        if self.interrupted {
            text.push_str("\nInterrupted: the checks after these were not played.");
        }
        if !self.left_behind.is_empty() {
            let _ = write!(
                text,
                "\n{} resources of the run {} could not be removed; delete them yourself:\n  {}",
                self.left_behind.len(),
                self.run,
                self.left_behind.join("\n  "),
            );
        }
        text
    }
}

//! A response, and the expectations that checks can have of it.

use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::verdict::{Difference, Failure, Verdict};

/// Bytes of a response that a report shows.
const SHOWN_BYTES: usize = 400;

/// A response, with its request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) request: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    /// `null` when the body is empty or not JSON.
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The difference between this response and the expectation.
    pub(crate) fn differs(&self, expected: impl Into<String>) -> Failure {
        let body = String::from_utf8_lossy(&self.bytes);
        let mut got = format!("{} {body}", self.status);
        if let Some((end, _)) = got.char_indices().find(|(at, _)| *at >= SHOWN_BYTES) {
            got.truncate(end);
            got.push('…');
        }
        Failure::Differs(Box::new(Difference {
            request: self.request.clone(),
            expected: expected.into(),
            got,
        }))
    }

    /// Like [`differs`](Self::differs), for a header or another detail that the body doesn't show.
    pub(crate) fn differs_in(
        &self,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Failure {
        Failure::Differs(Box::new(Difference {
            request: self.request.clone(),
            expected: expected.into(),
            got: format!("{} with {}", self.status, got.into()),
        }))
    }

    pub(crate) fn expect(&self, holds: bool, expected: impl Into<String>) -> Verdict<&Self> {
        if holds {
            Ok(self)
        } else {
            Err(self.differs(expected))
        }
    }

    pub(crate) fn status(&self, status: u16) -> Verdict<&Self> {
        self.expect(self.status == status, format!("status {status}"))
    }

    /// Expects a complete problem with this status and code (without `HYPERFLEET-`).
    pub(crate) fn problem(&self, status: u16, code: &str) -> Verdict<&Self> {
        let code = format!("HYPERFLEET-{code}");
        let fits =
            self.status == status && self.body["code"] == *code && self.body["status"] == status;
        self.expect(fits, format!("status {status} and code {code}"))?;
        self.header_is("content-type", Some("application/problem+json"))
    }

    pub(crate) fn detail(&self, detail: &str) -> Verdict<&Self> {
        self.has("/detail", detail)
    }

    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(crate) fn has(&self, pointer: &str, value: impl Into<Value>) -> Verdict<&Self> {
        let value = value.into();
        let found = self.body.pointer(pointer) == Some(&value);
        self.expect(found, format!("{pointer} is {value}"))
    }

    /// Expects that the member is absent, which is not the same as `null`.
    pub(crate) fn lacks(&self, pointer: &str) -> Verdict<&Self> {
        let found = self.body.pointer(pointer).is_some();
        self.expect(!found, format!("{pointer} is absent"))
    }

    pub(crate) fn header_is(&self, name: &str, value: Option<&str>) -> Verdict<&Self> {
        let got = self.header(name);
        if got == value {
            return Ok(self);
        }
        let show =
            |value: Option<&str>| value.map_or("absent".to_owned(), |value| format!("{value:?}"));
        Err(self.differs_in(
            format!("header {name} {}", show(value)),
            format!("header {name} {}", show(got)),
        ))
    }

    pub(crate) fn text(&self, pointer: &str) -> Verdict<&str> {
        let text = self.at(pointer).as_str();
        text.ok_or_else(|| self.differs(format!("{pointer} is a text")))
    }

    pub(crate) fn items(&self) -> Verdict<&[Value]> {
        let items = self.status(200)?.at("/items").as_array();
        items
            .map(Vec::as_slice)
            .ok_or_else(|| self.differs("items is an array"))
    }

    /// One member of every item, as texts.
    pub(crate) fn column(&self, member: &str) -> Verdict<Vec<&str>> {
        let items = self.items()?.iter();
        Ok(items
            .map(|item| item[member].as_str().unwrap_or_default())
            .collect())
    }

    /// Expects a list of these names, in this order.
    pub(crate) fn names_are(&self, names: &[&str]) -> Verdict<&Self> {
        let found = self.column("name")?;
        if found == names {
            return Ok(self);
        }
        Err(self.differs_in(format!("items {names:?}"), format!("items {found:?}")))
    }

    pub(crate) fn conditions(&self) -> Verdict<&[Value]> {
        let conditions = self.at("/status/conditions").as_array();
        conditions
            .map(Vec::as_slice)
            .ok_or_else(|| self.differs("status.conditions is an array"))
    }

    pub(crate) fn condition(&self, kind: &str) -> Verdict<&Value> {
        let found = self
            .conditions()?
            .iter()
            .find(|condition| condition["type"] == kind);
        found.ok_or_else(|| self.differs(format!("a condition {kind}")))
    }

    pub(crate) fn condition_has(
        &self,
        kind: &str,
        member: &str,
        value: impl Into<Value>,
    ) -> Verdict<&Self> {
        let (value, condition) = (value.into(), self.condition(kind)?);
        if condition[member] == value {
            return Ok(self);
        }
        let expected = format!("{member} of condition {kind} is {value}");
        Err(self.differs_in(expected, format!("condition {condition}")))
    }
}

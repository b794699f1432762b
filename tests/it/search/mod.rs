//! The search language against PostgreSQL: what it finds, and that nothing leads out of the list.

mod documented;
mod found;
mod in_memory;
mod indexes;
mod model;
mod scope;
mod tenants;
mod world;

pub(crate) use world::populated;

use crate::support::{Answer, TestApi};

/// One page of a list, with all that a search finds.
async fn search(api: &TestApi, list: &str, text: &str) -> Answer {
    let sign = if list.contains('?') { '&' } else { '?' };
    let path = format!("{list}{sign}size=100&search={}", encoded(text));
    api.get(&path).await
}

/// The names that a search finds, in the order of the list.
async fn names(api: &TestApi, list: &str, text: &str) -> Vec<String> {
    let answer = search(api, list, text).await;
    assert_eq!(answer.status, 200, "{text}: {}", answer.body);
    let names = answer.column("name");
    assert_eq!(answer.body["total"], names.len(), "{text}");
    names.into_iter().map(ToOwned::to_owned).collect()
}

/// A text as part of a URL.
pub(crate) fn encoded(text: &str) -> String {
    let bytes = text.bytes();
    bytes
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

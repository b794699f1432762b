//! JSON that stays text.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use hyperfleet_domain::json_limits::{DOCUMENT_BYTES_MAX, bytes_of, check_document};

/// Reads an object within the limits of a request.
pub(super) fn document(text: &RawValue) -> Result<Map<String, Value>, String> {
    let document: Map<String, Value> = json(text)?;
    // The database prints blanks that a request need not have.
    let bytes = match text.get().len() {
        bytes if bytes > DOCUMENT_BYTES_MAX => bytes_of(&document),
        bytes => bytes,
    };
    let document = Value::Object(document);
    check_document(&document, bytes)?;
    match document {
        Value::Object(document) => Ok(document),
        _ => unreachable!("it was made of an object"),
    }
}

pub(super) fn json<T: DeserializeOwned>(text: &RawValue) -> Result<T, String> {
    serde_json::from_str(text.get()).map_err(|error| error.to_string())
}

pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|error| unreachable!("it is a plain value: {error}"))
}

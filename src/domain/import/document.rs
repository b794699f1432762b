//! Documents that are stored exactly as in the source, within the limits of a request.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::domain::json_limits::{DOCUMENT_BYTES_MAX, bytes_of, check_document};

/// Reads an object that is stored as text, within the limits of a request.
pub(super) fn document(text: String) -> Result<(Map<String, Value>, Box<RawValue>), String> {
    let document = Value::Object(json(&text)?);
    // The database prints blanks that a request need not have.
    let bytes = if text.len() > DOCUMENT_BYTES_MAX {
        bytes_of(&document)
    } else {
        text.len()
    };
    check_document(&document, bytes)?;
    let Value::Object(document) = document else {
        unreachable!("it was made of an object")
    };
    let text = RawValue::from_string(text).map_err(|error| error.to_string())?;
    Ok((document, text))
}

pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

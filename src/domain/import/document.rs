//! Documents that are stored exactly as in the source, within the limits of a request.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::domain::json_limits::{DEPTH_MAX, NESTS_MAX, Nesting};

/// Largest spec and largest data of a report, in bytes without blanks: as large as a request's body.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Reads an object that is stored as text, within the limits of a request.
pub(super) fn document(text: String) -> Result<(Map<String, Value>, Box<RawValue>), String> {
    let document: Map<String, Value> = json(&text)?;
    // The database prints blanks that a request need not have.
    if text.len() > DOCUMENT_BYTES_MAX {
        let bytes = serde_json::to_string(&document).map_or(text.len(), |compact| compact.len());
        if bytes > DOCUMENT_BYTES_MAX {
            return Err(format!(
                "it has {bytes} bytes, more than {DOCUMENT_BYTES_MAX}"
            ));
        }
    }
    let document = Value::Object(document);
    let Nesting { depth, nests } = Nesting::of(&document);
    // A request's body has one more level and object around it.
    if depth >= DEPTH_MAX {
        return Err(format!("it is nested deeper than {} levels", DEPTH_MAX - 1));
    }
    if nests >= NESTS_MAX {
        return Err(format!(
            "it has {nests} arrays and objects, more than {}",
            NESTS_MAX - 1
        ));
    }
    let Value::Object(document) = document else {
        unreachable!("it was made of an object")
    };
    let text = RawValue::from_string(text).map_err(|error| error.to_string())?;
    Ok((document, text))
}

pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

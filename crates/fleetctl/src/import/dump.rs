//! Parses the response of etcd v2 to a recursive GET.
//!
//! ```text
//! <prefix>unit/<sha1>              {"Raw":"[Service]\nExecStart=…"}
//! <prefix>job/<name>/object        {"Name":"web.service","UnitHash":[20 numbers]}
//! <prefix>job/<name>/target-state  inactive, loaded or launched
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyperfleet_fleet_model::unit::{DesiredState, Options};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldUnit {
    pub(crate) name: String,
    /// `inactive` if none is stored.
    pub(crate) desired: DesiredState,
    /// Its file, or why there is none.
    pub(crate) options: Result<Options, String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DumpError {
    #[error("this is no answer of etcd v2")]
    Json(#[from] serde_json::Error),
    #[error("this is no answer of etcd v2: it has neither a node nor an error")]
    Foreign,
    #[error("etcd v2 answered: {message} ({cause}, code {code})")]
    Refused {
        code: u32,
        message: String,
        cause: String,
    },
    #[error("no units below {0:?}: does --prefix name the prefix of the old cluster?")]
    Empty(String),
}

#[derive(Debug, Deserialize)]
struct Answer {
    node: Option<Node>,
    #[serde(default, rename = "errorCode")]
    code: u32,
    #[serde(default)]
    message: String,
    #[serde(default)]
    cause: String,
}

#[derive(Debug, Deserialize)]
struct Node {
    #[serde(default)]
    key: String,
    value: Option<String>,
    #[serde(default)]
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct UnitBody {
    #[serde(rename = "Raw")]
    raw: String,
}

#[derive(Debug, Deserialize)]
struct JobObject {
    #[serde(rename = "UnitHash")]
    hash: Vec<u8>,
}

#[derive(Debug, Default)]
struct Job {
    object: Option<String>,
    target_state: Option<String>,
}

/// Checks that bytes are a response of etcd v2: a node or an error.
///
/// # Errors
/// They are not.
pub(super) fn check_answer(bytes: &[u8]) -> Result<(), DumpError> {
    answer(bytes).map(drop)
}

fn answer(bytes: &[u8]) -> Result<Answer, DumpError> {
    let answer: Answer = serde_json::from_slice(bytes)?;
    if answer.node.is_none() && answer.code == 0 {
        return Err(DumpError::Foreign);
    }
    Ok(answer)
}

/// The units of a dump, by name.
///
/// # Errors
/// It is no such dump, or has no jobs below the prefix.
pub(crate) fn old_units(dump: &[u8], prefix: &str) -> Result<Vec<OldUnit>, DumpError> {
    let answer = answer(dump)?;
    let Some(root) = answer.node else {
        let (code, message, cause) = (answer.code, answer.message, answer.cause);
        return Err(DumpError::Refused {
            code,
            message,
            cause,
        });
    };
    let prefix = format!("/{}/", prefix.trim_matches('/'));
    let (mut bodies, mut jobs) = (BTreeMap::new(), BTreeMap::<String, Job>::new());
    let mut nodes = vec![root];
    while let Some(node) = nodes.pop() {
        nodes.extend(node.nodes);
        let (Some(key), Some(value)) = (node.key.strip_prefix(&prefix), node.value) else {
            continue;
        };
        match key.split('/').collect::<Vec<_>>()[..] {
            ["unit", hash] => {
                bodies.insert(hash.to_owned(), value);
            }
            ["job", name, "object"] => {
                jobs.entry(name.to_owned()).or_default().object = Some(value);
            }
            ["job", name, "target-state"] => {
                jobs.entry(name.to_owned()).or_default().target_state = Some(value);
            }
            _ => {}
        }
    }
    if jobs.is_empty() {
        return Err(DumpError::Empty(prefix));
    }
    let unit = |(name, job): (String, Job)| OldUnit {
        desired: desired(job.target_state.as_deref()),
        options: options(job.object.as_deref(), &bodies),
        name,
    };
    Ok(jobs.into_iter().map(unit).collect())
}

/// A missing or unknown state keeps the unit from being started.
fn desired(text: Option<&str>) -> DesiredState {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn options(object: Option<&str>, bodies: &BTreeMap<String, String>) -> Result<Options, String> {
    let object = object.ok_or("it has no object: it was being created or destroyed")?;
    let object: JobObject =
        serde_json::from_str(object).map_err(|error| format!("its object: {error}"))?;
    let mut hash = String::new();
    for byte in object.hash {
        let _ = write!(hash, "{byte:02x}");
    }
    let body = bodies
        .get(&hash)
        .ok_or_else(|| format!("its file {hash} is missing"))?;
    let body: UnitBody =
        serde_json::from_str(body).map_err(|error| format!("its file: {error}"))?;
    Options::parse(body.raw.as_bytes()).map_err(|error| format!("its file: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn leaf(key: &str, value: impl Into<String>) -> Value {
        json!({"key": format!("/_coreos.com/fleet/{key}"), "value": value.into()})
    }

    fn dump(leaves: &[Value]) -> Vec<u8> {
        let folder = json!({"key": "/_coreos.com/fleet/x", "dir": true, "nodes": leaves});
        let root = json!({"key": "/_coreos.com/fleet", "dir": true, "nodes": [folder]});
        json!({"action": "get", "node": root})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn units_have_their_files_and_states() {
        let hash = "7dc08eb00f0c705e84a61e030d98e8cc3c994954";
        let bytes: Vec<u8> = (0..20)
            .map(|i| u8::from_str_radix(&hash[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        let object = json!({"Name": "a.service", "UnitHash": bytes}).to_string();
        let lost = json!({"Name": "b.service", "UnitHash": vec![0; 20]}).to_string();
        let dump = dump(&[
            leaf(
                &format!("unit/{hash}"),
                json!({"Raw": "[Service]\nExecStart=/bin/sleep 3000\n"}).to_string(),
            ),
            leaf("job/a.service/object", object),
            leaf("job/a.service/target-state", "launched"),
            leaf("job/a.service/target", "m"),
            leaf("job/b.service/object", lost),
            leaf("job/c.service/target-state", "loaded"),
            leaf("machines/m/object", "{}"),
        ]);
        let units = old_units(&dump, "/_coreos.com/fleet/").unwrap();
        let names: Vec<_> = units
            .iter()
            .map(|unit| (unit.name.as_str(), unit.desired))
            .collect();
        assert_eq!(
            names,
            [
                ("a.service", DesiredState::Launched),
                ("b.service", DesiredState::Inactive),
                ("c.service", DesiredState::Loaded),
            ]
        );
        assert_eq!(units[0].options.as_ref().unwrap().hash().to_string(), hash);
        assert!(
            units[1]
                .options
                .as_ref()
                .unwrap_err()
                .contains("is missing")
        );
        assert!(units[2].options.as_ref().unwrap_err().contains("no object"));
    }

    #[test]
    fn what_is_no_dump_is_said() {
        let said = |text: &str, prefix| old_units(text.as_bytes(), prefix).unwrap_err().to_string();
        for foreign in ["<html>", r#"{"message":"Not Found"}"#] {
            let said = said(foreign, "/x");
            assert!(said.contains("no answer of etcd v2"), "{said}");
        }
        let refused = r#"{"errorCode":100,"message":"Key not found","cause":"/x","index":7}"#;
        assert_eq!(
            said(refused, "/x"),
            "etcd v2 answered: Key not found (/x, code 100)"
        );
        let empty = String::from_utf8(dump(&[])).unwrap();
        assert!(
            said(&empty, "_coreos.com/fleet").contains("no units below \"/_coreos.com/fleet/\"")
        );
    }
}

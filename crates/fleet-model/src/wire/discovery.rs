//! The API in Google's API Discovery format, as the older server described it, for dynamic clients and code
//! generators. Served unchanged; clients replace `rootUrl`.
//!
//! It lacks `PATCH …/machines`, watching and explaining, for which the older document has no terms. They are in
//! the OpenAPI document.

use serde_json::Value;

/// The document.
///
/// # Panics
/// Never: the file is part of the program, and a test reads it.
pub fn document() -> Value {
    serde_json::from_str(include_str!("discovery.json")).expect("the committed document is JSON")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every value with a name, at any depth.
    fn all<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v Value>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get(name));
                members.values().for_each(|member| all(member, name, found));
            }
            Value::Array(elements) => elements.iter().for_each(|e| all(e, name, found)),
            _ => {}
        }
    }

    #[test]
    fn it_has_the_members_of_the_older_document() {
        let document = document();
        let members: BTreeSet<_> = document.as_object().unwrap().keys().cloned().collect();
        let expected = "kind discoveryVersion id name version title description documentationLink protocol \
            icons labels baseUrl basePath rootUrl servicePath batchPath parameters auth schemas resources";
        let expected = expected.split_whitespace().map(str::to_owned);
        assert_eq!(members, expected.collect());
        let machine_id = &document["schemas"]["Unit"]["properties"]["machineID"];
        assert_eq!(machine_id["required"], true);
        let state = &document["resources"]["UnitState"]["methods"]["List"]["parameters"];
        let names: Vec<_> = state.as_object().unwrap().keys().collect();
        assert_eq!(names, ["machineID", "nextPageToken", "unitName"]);
    }

    #[test]
    fn every_schema_is_used_and_every_reference_leads_to_one() {
        let document = document();
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        let references: BTreeSet<_> = references.iter().filter_map(|r| r.as_str()).collect();
        let schemas = document["schemas"].as_object().unwrap();
        let names: BTreeSet<_> = schemas.keys().map(String::as_str).collect();
        assert_eq!(references, names);
        assert!(schemas.iter().all(|(name, schema)| schema["id"] == *name));
    }
}

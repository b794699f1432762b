//! Refused searches, and their messages.

use crate::check::{Check, check};

const SOURCE: &str = "docs/guides/search.md#refused";

/// Searches, and the problems that they cause.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        "field",
        "An unknown field is named as such",
        "nmae = 'a'",
        "invalid field in search or order query",
    ),
    (
        "integer",
        "generation compares with integers",
        "generation = 'three'",
        "field 'generation' expects an integer",
    ),
    (
        "time",
        "Times compare with times",
        "created_time > 'yesterday'",
        "field 'created_time' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)",
    ),
    (
        "condition-value",
        "A condition is True, False or Unknown",
        "status.conditions.Reconciled = 'true'",
        "condition status 'true' is invalid: must be True, False, or Unknown",
    ),
    (
        "condition-operator",
        "Conditions have no order",
        "status.conditions.Reconciled < 'True'",
        "only equality operator (=) is supported for condition status queries",
    ),
    (
        "condition-type",
        "Types of conditions are in PascalCase",
        "status.conditions.reconciled = 'True'",
        "condition type 'reconciled' is invalid: must be PascalCase (e.g., Reconciled, Available)",
    ),
    (
        "condition-time",
        "Times of conditions compare with full times",
        "status.conditions.Reconciled.last_updated_time < '2026-01-01'",
        "invalid timestamp for condition subfield: expected RFC3339 format (e.g., 2026-01-01T00:00:00Z)",
    ),
    (
        "condition-member",
        "A condition has three members that can be asked for",
        "status.conditions.Reconciled.created_time > '2026-01-01T00:00:00Z'",
        "condition subfield 'created_time' is not supported; use last_updated_time, last_transition_time, or observed_generation",
    ),
    (
        "arithmetic",
        "There is no arithmetic",
        "generation + 1 = 3",
        "unsupported comparison operator: ADD",
    ),
    (
        "pattern",
        "There are no regular expressions",
        "name ~= 'a.*'",
        "unsupported comparison operator: REQ",
    ),
    (
        "label-key",
        "A label has a key",
        "labels. = 'x'",
        "label key cannot be empty",
    ),
    (
        "spec-name",
        "Names in a spec are lower-case",
        "spec.Region = 'x'",
        "spec field segment 'Region' is invalid: must contain only lowercase letters, digits, and underscores",
    ),
];

pub(super) fn checks() -> Vec<Check> {
    let refused = REFUSED.iter().map(|(id, rule, search, detail)| {
        check!(format!("search-fault.{id}"), *rule, SOURCE, |api| {
            let list = api.list("/clusters", &[("search", search)]).await?;
            list.problem(400, "VAL-005")?.detail(detail)?;
        })
    });
    let further = [
        check!(
            "search-fault.syntax",
            "A syntax error is reported with its position",
            SOURCE,
            |api| {
                for search in [
                    "name = 'a' andd generation = 1",
                    "name = ",
                    "(name = 'a'",
                    "= 'a'",
                ] {
                    let list = api.list("/clusters", &[("search", search)]).await?;
                    let detail = list.problem(400, "VAL-005")?.text("/detail")?;
                    let starts = detail.starts_with("failed to parse search query: ")
                        && detail.contains(" at position ");
                    list.expect(starts, "a detail with the position of the fault")?;
                }
            }
        ),
        check!(
            "search-fault.escape",
            "A search can't close the parentheses around itself",
            SOURCE,
            |api| {
                let list = api
                    .list("/clusters", &[("search", "name = 'a') or (name = 'b'")])
                    .await?;
                list.problem(400, "VAL-005")?;
            }
        ),
        check!(
            "search-fault.length",
            "A search has 4096 bytes at most",
            SOURCE,
            |api| {
                let search = format!("name = '{}'", "x".repeat(4100));
                let list = api.list("/clusters", &[("search", &search)]).await?;
                list.problem(400, "VAL-005")?
                    .detail("search query exceeds maximum length of 4096 characters")?;
            }
        ),
    ];
    refused.chain(further).collect()
}

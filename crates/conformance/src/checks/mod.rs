//! The rules of the API, grouped by topic.
#![expect(clippy::too_many_lines, reason = "a list of checks is one function")]

mod children;
mod conditions;
mod create;
mod deletion;
mod errors;
mod fields;
mod headers;
mod json;
mod kinds;
mod labels;
mod leases;
mod lists;
mod orders;
mod pages;
mod patch;
mod patch_formats;
mod reports;
mod routes;
mod search;
mod search_faults;

use crate::check::Check;

/// All checks, in the order in which they run.
pub(crate) fn all() -> Vec<Check> {
    let groups = [
        routes::checks(),
        headers::checks(),
        create::checks(),
        labels::checks(),
        json::checks(),
        patch::checks(),
        patch_formats::checks(),
        reports::checks(),
        conditions::checks(),
        deletion::checks(),
        children::checks(),
        lists::checks(),
        pages::checks(),
        orders::checks(),
        fields::checks(),
        search::checks(),
        search_faults::checks(),
        leases::checks(),
        errors::checks(),
        kinds::checks(),
    ];
    groups.into_iter().flatten().collect()
}

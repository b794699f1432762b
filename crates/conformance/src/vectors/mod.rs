//! The project's vectors that HTTP can test: conditions and whole histories.

mod aggregation;
mod cast;
mod histories;

use crate::check::Check;

/// One check for each aggregation, and one for the histories of each kind.
pub(crate) fn checks() -> Vec<Check> {
    let mut checks = aggregation::checks();
    checks.extend(histories::checks());
    checks
}

//! The vectors of the project as far as HTTP can play them: conditions and whole histories.

mod aggregation;
mod cast;
mod histories;

use crate::check::Check;

/// One check for each aggregation, one for the histories of each kind.
pub(crate) fn checks() -> Vec<Check> {
    let mut checks = aggregation::checks();
    checks.extend(histories::checks());
    checks
}

//! How a law that does not hold is told, by those who hold inputs against laws (`tsl/laws`).

use std::fmt::Debug;

/// Both are to be equal.
pub(super) fn same<T: PartialEq + Debug>(is: &T, should: &T, what: &str) -> Result<(), String> {
    if is == should {
        return Ok(());
    }
    Err(format!("{what} is {is:?}, not {should:?}"))
}

/// There are to be no more than so many.
pub(super) fn at_most(count: usize, most: usize, what: &str) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("{count} {what}, {most} are allowed"))
}

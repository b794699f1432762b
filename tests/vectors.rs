//! The copies of the vectors are those of their source, wherever that lies beside the checkout.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

use std::fs;
use std::path::Path;

/// Where the facts come from. Who clones only the project does not have it, and needs it not.
const SOURCE: &str = "../shared/vectors";

#[test]
fn the_copies_are_true_to_their_source() {
    if !Path::new(SOURCE).is_dir() {
        println!("skipped: {SOURCE} is not there to compare with");
        return;
    }
    let mut compared = 0;
    for copy in fs::read_dir("tests/vectors").unwrap() {
        let copy = copy.unwrap();
        let source = Path::new(SOURCE).join(copy.file_name());
        let is_true = fs::read(copy.path()).unwrap() == fs::read(&source).unwrap();
        assert!(is_true, "{} differs", copy.path().display());
        compared += 1;
    }
    assert!(compared >= 2, "the vectors of the REST service are copied");
}

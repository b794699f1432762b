//! Unit files from the fuzz corpus, checked by every test run.

use std::fs;
use std::path::Path;

use crate::unit::laws;

#[test]
fn every_file_of_the_corpus_keeps_the_laws() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unit_file");
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(laws::check_bytes(&bytes), Ok(()), "{}", path.display());
        count += 1;
    }
    assert!(count >= 100, "{count} files in {}", folder.display());
}

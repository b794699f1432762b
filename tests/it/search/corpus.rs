//! Texts that the fuzz target found worth keeping, held against the same laws by every test run.

use std::fs;
use std::path::Path;

use hyperfleet::domain::tsl::laws;

#[test]
fn every_text_of_the_corpus_keeps_the_laws() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/search");
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // As the fuzz target reads it: text, whatever the bytes.
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(laws::hold_for(&text), Ok(()), "{}", path.display());
        count += 1;
    }
    assert!(count >= 100, "{count} texts in {}", folder.display());
}

//! Any bytes as a search. What holds of all of them stands in `hyperfleet_domain::tsl::laws`.
#![no_main]

use hyperfleet_domain::tsl::laws;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // As a request has it by the time that it is read: text, whatever was sent.
    let text = String::from_utf8_lossy(bytes);
    if let Err(broken) = laws::check_search(&text) {
        panic!("{text:?}: {broken}");
    }
});

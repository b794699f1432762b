//! Any bytes as a unit file, and as options that are sent. What holds of all of them stands in
//! `hyperfleet_fleet_model::unit::laws`.
#![no_main]

use hyperfleet_fleet_model::unit::laws;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = laws::check_bytes(bytes) {
        panic!("{:?}: {broken}", String::from_utf8_lossy(bytes));
    }
});

//! Tests of whole units. The tests of each part are below its code.
//!
//! ```text
//! vectors        names and files with known results, made with the older system
//! files          reading of files, and positions of faults
//! options        accepted and refused options
//! fleet_section  requirements from [X-Fleet]
//! validity       options that exclude each other
//! properties     properties of any bytes and any options
//! ```

mod corpus;
mod files;
mod fleet_section;
mod options;
mod properties;
mod validity;
mod vectors;

//! Facts about units as a whole: each part by itself is tested below its own code.
//!
//! ```text
//! vectors        names and files with known results, made with the older system
//! files          what is read of a file, and where it is wrong
//! options        what is taken of options that are sent
//! fleet_section  what [X-Fleet] asks of machines
//! validity       which options may stand together
//! properties     laws of any bytes and any options
//! ```

mod corpus;
mod files;
mod fleet_section;
mod options;
mod properties;
mod validity;
mod vectors;

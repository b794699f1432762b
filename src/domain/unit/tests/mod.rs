//! Facts about units as a whole: each part by itself is tested below its own code.
//!
//! ```text
//! files          what is read of a file, and where it is wrong
//! options        what is taken of options that are sent
//! ```

mod files;
mod options;

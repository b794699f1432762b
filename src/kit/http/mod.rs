//! What the HTTP listeners of every daemon here have in common.

mod problem;

pub use problem::{BODY_BYTES_MAX, Problem, ProblemKind};

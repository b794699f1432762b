//! Units on machines.

mod engine;

//! Stores resources: rows to domain values and back; decides nothing.

pub mod postgres;

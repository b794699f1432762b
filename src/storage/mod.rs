//! Where resources live: rows to domain values and back; decides nothing.

pub mod postgres;

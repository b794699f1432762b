//! Where state lives. Translates between rows and domain values; decides nothing.

pub mod postgres;

//! Tokens for development and tests.

pub mod token;

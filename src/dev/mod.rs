//! For trying the service: tokens, and an adapter that only pretends to work.

pub mod demo;
pub mod token;

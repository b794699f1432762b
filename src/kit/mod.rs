//! What every daemon here is made of, whatever it serves. Names nothing outside itself.

pub mod json;
pub mod openapi;

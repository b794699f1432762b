//! What every daemon here is made of, whatever it serves. Names nothing outside itself.

pub(crate) mod causes;
pub mod clock;
pub mod crypto;
pub(crate) mod files;
pub mod settings;
pub(crate) mod supervise;

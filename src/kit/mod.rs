//! What every daemon here is made of, whatever it serves. Names nothing outside itself.

pub(crate) use hyperfleet_server_kit::causes;
pub mod clock;
pub mod crypto;
pub(crate) mod files;
pub mod http;
pub(crate) mod supervise;

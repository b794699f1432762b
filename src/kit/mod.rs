//! What every daemon here is made of, whatever it serves. Names nothing outside itself.

pub(crate) use hyperfleet_server_kit::causes;
pub(crate) mod activation;
pub mod clock;
pub mod crypto;
pub(crate) mod ending;
pub(crate) mod faults;
pub(crate) mod files;
pub mod http;
pub mod json;
pub(crate) mod manager;
pub mod openapi;
pub mod program;
pub(crate) mod server;
pub mod settings;
pub(crate) mod shutdown;
pub(crate) mod side;
pub(crate) mod signals;
pub(crate) mod sockets;
pub(crate) mod supervise;
pub mod telemetry;
pub(crate) mod tls;
pub(crate) mod unix_socket;

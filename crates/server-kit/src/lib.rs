//! The common parts of HyperFleet's daemons: settings, listeners, TLS, limits, logs, metrics, traces, health
//! and shutdown. It depends on no product. Its metrics have the prefix of the API's existing dashboards.

pub mod activation;
pub mod backoff;
pub mod causes;
pub mod check;
pub mod clock;
pub mod crypto;
pub mod ending;
pub mod errors;
pub mod files;
pub mod http;
pub mod json;
pub mod manager;
pub mod openapi;
pub mod program;
pub mod server;
pub mod settings;
pub mod shutdown;
pub mod side;
pub mod signals;
pub mod sockets;
pub mod supervise;
pub mod telemetry;
pub mod tls;
pub mod unix_socket;

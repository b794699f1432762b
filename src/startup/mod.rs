//! The composition root: the one place that knows every part.

mod authentication;
mod banner;
mod commands;
mod database;
mod dev;
mod server;
mod telemetry;

pub use commands::run;
pub use server::Server;

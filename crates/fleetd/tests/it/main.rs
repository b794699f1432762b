//! The real program fleetd with its settings, sockets, etcd and signals.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that fails, panics"
)]

mod activation;
mod agent;
mod etcd;
mod fleet_socket;
mod handover;
mod inspect;
mod listeners;
mod local;
mod logs;
mod monitoring;
mod program;
mod reload;
mod settings;
mod starting;
mod stopping;
mod tls;
mod upgrade;

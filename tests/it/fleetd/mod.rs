//! fleetd as a user starts it: the real program, its settings, its sockets, its etcd, its signals.

mod activation;
mod etcd;
mod handover;
mod listeners;
mod logs;
mod program;
mod reload;
mod settings;
mod stopping;
mod tls;

//! The scheduler of units over machines, on the registry in etcd.
//!
//! `engine` decides which unit runs where: one of all engines leads, the others stand by.

pub mod engine;

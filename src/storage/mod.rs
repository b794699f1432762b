//! Where state lives. Translates between rows or keys and domain values; decides nothing.
//!
//! Postgres is used as it is: there is one, and tests run a real one. What fleet needs is kept by the
//! [`registry`] in a [`keys::KeyStore`], of which there are two: [`etcd`], and [`memory`] for simulations.

pub mod etcd;
pub mod keys;
pub mod memory;
pub mod postgres;
pub mod registry;

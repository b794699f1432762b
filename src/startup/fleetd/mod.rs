//! The daemon of fleet.

mod activation;
mod listen;
mod socket;

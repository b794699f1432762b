//! Fleet: what its users ask and say, and the loops beside them.

mod api;
mod damaged;
mod engine;
mod faults;
mod follow;
mod mirror;
mod mirrored;
mod units;

//! Fleet: what its users ask and say, and the loops beside them.

mod damaged;
mod engine;
mod follow;
mod mirror;
mod mirrored;
mod units;

//! Watches of lists: each change once, in order, whatever breaks in between.

mod bursts;
pub(crate) mod client;
mod ends;
mod events;
mod initial;
mod model;
mod order;
mod resuming;
mod waiting_writers;

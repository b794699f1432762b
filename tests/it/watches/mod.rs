//! Watches of lists: each change once, in order, whatever breaks in between.

pub(crate) mod client;
mod ends;
mod events;
mod model;
mod order;
mod resuming;

//! Watches of lists: each change once, in order, whatever breaks in between.

mod client;
mod ends;
mod events;
mod model;
mod order;
mod resuming;

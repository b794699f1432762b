//! `hyperfleet-api import`: the database of the older service becomes one of this service.

mod cli;
mod clients;
mod conflicts;
mod differences;
mod older;
mod races;
mod refused;
mod repeated;
mod taken_over;
mod world;

//! `hyperfleet-api import`: the database of the older service becomes one of this service.

mod cli;
mod conflicts;
mod differences;
mod interrupted;
mod races;
mod refused;
mod repeated;
mod taken_over;
mod world;

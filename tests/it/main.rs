//! The service as a client sees it: the production server on a free port, a real PostgreSQL, a
//! fresh database per test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that fails, panics"
)]

mod support;

mod adapter;
mod audit;
mod auth;
mod bad_input;
mod clients;
mod connections;
mod continuation;
mod crowded_owners;
mod deletion;
mod derived_conditions;
mod documents;
mod dry_run;
mod encodings;
mod explain;
mod families;
mod faults;
mod fields;
mod fleet_adapter;
mod followers;
mod force_delete;
mod gathered_reads;
mod histories;
mod history;
mod idempotency;
mod import;
mod leases;
mod lifecycle;
mod limits;
mod lists;
mod metrics;
mod monitoring;
mod openapi;
mod pages;
mod passes;
mod patches;
mod preconditions;
mod races;
mod reconfiguration;
mod references;
mod response_writes;
mod routes;
mod rule_costs;
mod schema;
mod search;
mod settings;
mod shown_commands;
mod slow_readers;
mod smoke;
mod spec_schemas;
mod statements;
mod tenancy;
mod upgrades;
mod watches;

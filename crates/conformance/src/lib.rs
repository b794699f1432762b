//! Tests any server against the rules of the HyperFleet API, over HTTP alone.
//!
//! ```text
//! cli ─▶ run ─▶ checks ─▶ subject ─▶ client ─▶ answer
//!         └──▶ report              (the server)
//! ```
//!
//! A check is a rule in one sentence and the requests that test it. Every resource of a check has the run's
//! label and a name with the run's prefix. The run removes all of them at its end.

mod answer;
mod check;
mod checks;
mod cleanup;
mod cli;
mod client;
mod report;
mod run;
mod subject;
mod verdict;

pub use cli::main;
pub use report::{CheckOutcome, Row, RunReport};
pub use run::{RunError, rules, run};
pub use subject::Target;

//! A library for adapters of the HyperFleet API: finds resources that need work, calls an [`Adapter`] for each,
//! and reports the result.
//!
//! ```text
//! watch of the API: changes ──▶ queue ──▶ workers: read the resource and its owner ─▶ Adapter::reconcile ─▶ report
//!   lists without it: changes     ▲                                                      │
//!   lists at a slow rate: all     └────────────── again: a failure, or on request ◀───────┘
//! ```
//!
//! The library decides when a resource is worked on, never what is done. At most one worker has a resource, and
//! changes meanwhile lead to one more run. A failed resource is reported as such, and retried with back-off. With
//! [`Runner::elected`] only one of several copies works, the holder of a lease of the API; with [`Runner::with_lease`]
//! the copy that the caller elects. Nothing is stored: after a restart the adapter begins with all resources.
//!
//! Changes arrive by a watch of each kind. While there is none, because the service offers none or the connection is
//! lost, unreconciled resources are listed periodically. A watch continues after its last position, or with a list of
//! everything if the service has forgotten that position, so that no change is missed.
//!
//! ```no_run
//! use hyperfleet_adapter::{
//!     Adapter, Api, Election, Finding, Kind, ReconcileOutcome, Report, Runner, Settings, Token, Work,
//! };
//!
//! struct Names;
//!
//! impl Adapter for Names {
//!     async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
//!         let report = match work.resource.is_deleted() {
//!             true => Report::finalized("Forgotten", "the name is free"),
//!             false => Report::new(Finding::yes("Known", "the name is known")),
//!         };
//!         Ok(ReconcileOutcome::reported(report))
//!     }
//! }
//!
//! # async fn run() -> Result<(), hyperfleet_adapter::SettingError> {
//! let api = Api::new("http://127.0.0.1:8000", Token::None)?;
//! let settings = Settings::new("names", vec![Kind::new("clusters")]);
//! let election = Election::new("names");
//! Runner::elected(api, settings, Names, election).run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

mod api;
mod election;
mod error;
mod finding;
mod queue;
mod report;
mod resource;
mod runner;
mod telemetry;
mod token;
mod watch;

pub use api::{Api, Page, PageToken, Reported, SettingError};
pub use election::Election;
pub use error::Error;
pub use finding::{Finding, Truth};
pub use report::{Report, StoredReport};
pub use resource::{Owner, Resource};
pub use runner::{Adapter, Kind, ReconcileOutcome, Runner, Settings, Work};
pub use token::Token;

//! Facts about the rules as a whole: each rule by itself is tested below its own code.
//!
//! ```text
//! aggregation_vectors    single computations with known results, made with the older system
//! histories              200 whole lives of a resource with known results, step by step
//! lifecycle              create, PATCH and reports by name
//! deletion, removal      DELETE, owners that go with their last child, force-delete by name
//! reference              every rule for links by name
//! properties             laws of aggregation and of the choice between two reports
//! given                  builders
//! ```

mod aggregation_vectors;
mod deletion;
mod given;
mod histories;
mod lifecycle;
mod properties;
mod reference;
mod removal;

//! Facts about the rules together. Tests of single rules are below their code.
//!
//! ```text
//! aggregation_vectors    single computations with known results, made with the older system
//! histories              200 complete histories of a resource with known results, step by step
//! lifecycle              create, PATCH and reports by name
//! deletion, removal      DELETE, owners removed with their last child, force-delete by name
//! dry_run                what a dry run says of a decision
//! explain                what a resource waits for, by name
//! explain_laws           explanations agree with the lifecycle, over random input
//! reference              every rule for references by name
//! tenancy                tenants of requests: headers, configurations
//! mapping                rules that derive conditions: vectors, refusals, limits of cost
//! properties             laws of aggregation and of the choice between two reports
//! family_laws            laws of parents and children, over random requests
//! ├─ laws                the laws
//! └─ world               a store in memory that carries out the decisions of the lifecycle
//! given                  builders
//! ```

mod aggregation_vectors;
mod condition_rules;
mod deletion;
mod dry_run;
mod explain;
mod explain_laws;
mod family_laws;
mod given;
mod histories;
mod laws;
mod lifecycle;
mod properties;
mod reference;
mod removal;
mod tenancy;
mod world;

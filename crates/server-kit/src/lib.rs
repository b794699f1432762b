//! What every daemon of HyperFleet is made of.

pub mod causes;

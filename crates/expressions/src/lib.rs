//! Expressions in CEL that a configuration may contain: they may neither harm nor delay the program that runs them.
//!
//! ```text
//! text ─▶ parser ─▶ scope ─▶ Expression      every error is found at start
//! JSON ─▶ mask ─▶ CelValue ─▶ Evaluation ─▶ bool, text, integer, JSON
//!                                │
//!                         meter, guard: what an expression may cost, panics, stacks
//! ```
//!
//! The interpreter itself has no limits. Names, functions and patterns are checked once; at run time all work is
//! counted, because it depends on the data of clients. `docs/guides/derived-conditions.md` is the reference
//! of the language and of its limits.
//!
//! ```
//! use hyperfleet_expressions::{CelValue, Evaluation, Expression, Meter};
//!
//! let name = Expression::compile("resource.name + \"-\" + string(index + 1)", &["resource", "index"])?;
//! let resource = serde_json::json!({ "name": "db" });
//! let variables = [("resource", CelValue::masked(&resource)), ("index", CelValue::int(0))];
//! let mut evaluation = Evaluation::new(variables);
//! assert_eq!(evaluation.run_text(&name, &Meter::default())?, "db-1");
//! # Ok::<(), String>(())
//! ```

mod cel_value;
mod data_size;
mod error;
mod evaluation;
mod excerpt;
mod expression;
mod functions;
mod guard;
mod mask;
mod meter;
mod scope;
#[cfg(test)]
mod tests;
mod value;

pub use cel_value::CelValue;
pub use data_size::{DataSize, TEXTS_BYTES_MAX, VALUES_MAX};
pub use evaluation::Evaluation;
pub use expression::{Expression, SOURCE_BYTES_MAX};
pub use guard::{is_evaluating, on_deep_stack};
pub use mask::{MASK, hides};
pub use meter::{Meter, UNITS_MAX};
pub use scope::DEPTH_MAX;

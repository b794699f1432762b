//! The search language of lists (TSL): converts text to a [`Filter`].
//!
//! ```text
//! search    := both { "or" both }
//! both      := negation { "and" negation }
//! negation  := "not" negation | comparison
//! comparison:= sum [ sign sum
//!                  | ["not"] ("in" list | "between" sum "and" sum | ("like" | "ilike") sum)
//!                  | "is" ["not"] "null" ]
//! sum       := product { ("+" | "-") product }
//! product   := unary { ("*" | "/" | "%") unary }
//! unary     := "-" unary | ("len" | "any" | "all" | "sum") unary | primary
//! primary   := "(" search ")" | "[" [ sum { "," sum } [","] ] "]" | name | text | number | "true" | "false"
//! list      := "(" [ sum { "," sum } [","] ] ")" | sum
//! sign      := "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" | "~=" | "~!"
//! ```
//!
//! Keywords may be in any case. Arithmetic, `~=`, `~!`, `len` and the like are parsed only so that the refusal can name
//! them. `lexer` makes tokens, `parser` makes an expression of them, and `check` makes a filter: it finds the fields
//! and checks the comparisons. The scope of a list (kind, owner, tenant) is not part of the text. It is added to the filter
//! afterwards, so no text finds rows outside the list (`docs/decisions/0010-searches.md`). Lists run a filter as SQL;
//! `evaluate` decides the same in memory, for watches. `laws` has properties of any text.

mod check;
mod evaluate;
mod expression;
mod field;
mod filter;
#[cfg(any(test, feature = "laws"))]
#[doc(hidden)]
#[path = "tests/laws.rs"]
pub mod laws;
mod lexer;
mod number;
mod parser;
mod pattern;
#[cfg(any(test, feature = "laws"))]
#[path = "tests/print.rs"]
mod print;
mod stored_text;
#[cfg(test)]
mod tests;

pub use expression::Comparison;
pub use field::{ConditionPart, Field, Property, Type, Value};
pub use filter::{Filter, Predicate, Test};
pub use number::{NUMBER_CHARACTERS_MAX, NUMBER_TEXT, Number};

/// Longest search, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Deepest nesting of parentheses and the like.
pub const DEPTH_MAX: usize = 64;
/// Elements of one list at most.
pub const ELEMENTS_MAX: usize = 1000;
/// Tests in one search at most: each runs on every row that the others leave.
pub const TESTS_MAX: usize = 100;
/// Most values of specs in one search: each one reads the entire spec.
pub const SPEC_VALUES_MAX: usize = 16;
/// Longest pattern, in bytes: its cost grows with its length times the length of the text.
pub const PATTERN_BYTES_MAX: usize = 256;

/// Why a search was refused, in the words of the older service where it has them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("search query exceeds maximum length of {TEXT_BYTES_MAX} characters")]
    TooLong,
    /// The syntax is wrong.
    #[error("failed to parse search query: {what} at position {position}:\n{text}\n{}^", " ".repeat(*position))]
    Syntax {
        what: String,
        /// In characters from the start.
        position: usize,
        text: String,
    },
    /// Resources have no such field.
    #[error("invalid field in search or order query")]
    UnknownField(String),
    /// The search has no meaning for resources.
    #[error("{0}")]
    Meaning(String),
}

impl SearchError {
    fn meaning(message: impl Into<String>) -> Self {
        Self::Meaning(message.into())
    }
}

/// Parses a search.
///
/// # Errors
///
/// The first error: of length, then of syntax, then of meaning.
pub fn parse(text: &str) -> Result<Filter, SearchError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SearchError::TooLong);
    }
    let expression = parser::parse(text).map_err(|error| SearchError::Syntax {
        what: error.what,
        position: text[..error.at].chars().count(),
        text: text.to_owned(),
    })?;
    let filter = check::filter(&expression, false)?;
    check::limits(&filter)?;
    Ok(filter)
}

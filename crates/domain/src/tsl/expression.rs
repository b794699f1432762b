//! A parsed search, before its fields are checked.

use strum::{EnumString, IntoStaticStr};

use super::number::Number;

/// A search as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// Two or more.
    And(Vec<Expression>),
    /// Two or more.
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Compare(Box<Expression>, Comparison, Box<Expression>),
    In(Box<Expression>, Box<Expression>),
    Between(Box<Expression>, Box<Expression>, Box<Expression>),
    Like {
        subject: Box<Expression>,
        pattern: Box<Expression>,
        ignores_case: bool,
    },
    IsNull(Box<Expression>),
    List(Vec<Expression>),
    Name(String),
    Text(String),
    Number(Number),
    Boolean(bool),
    /// Part of the language, but unsupported for resources: one of [`UNSUPPORTED`] and its operands.
    Unsupported(&'static str, Vec<Expression>),
}

/// How two values compare, as searches and SQL write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(const_into_str)]
pub enum Comparison {
    #[strum(serialize = "=")]
    Equal,
    #[strum(serialize = "!=")]
    NotEqual,
    #[strum(serialize = "<")]
    Less,
    #[strum(serialize = "<=")]
    LessOrEqual,
    #[strum(serialize = ">")]
    Greater,
    #[strum(serialize = ">=")]
    GreaterOrEqual,
}

impl Comparison {
    /// The same comparison with its sides exchanged.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    pub(super) fn orders(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// Operators that are parsed and refused, with their names in messages.
pub(super) const UNSUPPORTED: [(&str, &str); 11] = [
    ("~=", "REQ"),
    ("~!", "RNE"),
    ("+", "ADD"),
    ("-", "SUB"),
    ("*", "MUL"),
    ("/", "DIV"),
    ("%", "MOD"),
    ("len", "LEN"),
    ("any", "ANY"),
    ("all", "ALL"),
    ("sum", "SUM"),
];

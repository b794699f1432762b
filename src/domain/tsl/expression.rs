//! What a search says, before it is known whether it makes sense.

use strum::{EnumString, IntoStaticStr};

use super::number::Number;

/// A search as it is written.
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
    /// What can be said in the language, but is not understood of resources: one of [`UNSUPPORTED`]
    /// and its operands.
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

/// Operators that are read and refused, and what the message calls each.
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

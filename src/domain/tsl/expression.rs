//! What a search says, before it is known whether it makes sense.

use super::number::Number;

/// A search as it is written. [`Display`](std::fmt::Display) writes it so that it reads as the same
/// again.
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
    /// What can be said in the language, but is not understood of resources.
    Unsupported(Unsupported, Vec<Expression>),
}

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    pub(super) const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// As searches and SQL write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

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

/// An operator that is read, and refused with a message that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsupported {
    Matches,
    MatchesNot,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Len,
    Any,
    All,
    Sum,
}

impl Unsupported {
    #[cfg(test)]
    pub(super) const ALL: [Self; 11] = [
        Self::Matches,
        Self::MatchesNot,
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
        Self::Len,
        Self::Any,
        Self::All,
        Self::Sum,
    ];

    /// As searches write it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Matches => "~=",
            Self::MatchesNot => "~!",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Len => "len",
            Self::Any => "any",
            Self::All => "all",
            Self::Sum => "sum",
        }
    }

    /// As messages call it.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Matches => "REQ",
            Self::MatchesNot => "RNE",
            Self::Add => "ADD",
            Self::Subtract => "SUB",
            Self::Multiply => "MUL",
            Self::Divide => "DIV",
            Self::Remainder => "MOD",
            Self::Len => "LEN",
            Self::Any => "ANY",
            Self::All => "ALL",
            Self::Sum => "SUM",
        }
    }
}

//! Values of variables: from JSON, texts and numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use serde_json::{Map, Number, Value};

use crate::mask;
use crate::value::Boxed;

/// Whole numbers up to here are exact as doubles, JSON's only number type in expressions.
const EXACT_MAX: u64 = 1 << 53;

/// A value for expressions. It borrows the texts that it is made from.
pub struct CelValue<'v>(pub(crate) Boxed<'v>);

impl<'v> CelValue<'v> {
    /// A value from JSON: members named like secrets are hidden, and numbers are doubles. Whole numbers that a
    /// double cannot represent stay whole. Lists and maps that are nested too deep are empty.
    pub fn masked(value: &'v Value) -> Self {
        Self(masked(value, 0))
    }

    /// A value from an object's members. `depth` is the number of lists and maps around it.
    pub fn masked_members(members: &'v Map<String, Value>, depth: usize) -> Self {
        Self(masked_members(members, depth))
    }

    /// A text that is not masked.
    pub fn text(text: impl Into<Cow<'v, str>>) -> Self {
        Self(Box::new(CelString::from(text.into())))
    }

    /// A whole number, for arithmetic with literals: `index + 1`.
    pub fn int(number: i64) -> Self {
        Self(Box::new(CelInt::from(number)))
    }

    /// A number in the form of JSON's numbers: `generation + 1.0`.
    pub fn double(number: f64) -> Self {
        Self(double(number))
    }

    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self(list(items.into_iter().map(|item| item.0)))
    }

    /// A map of values. Its names are not masked ([`hides`](crate::hides)).
    pub fn map(members: impl IntoIterator<Item = (&'v str, Self)>) -> Self {
        Self(map(members
            .into_iter()
            .map(|(name, value)| (name, value.0))))
    }
}

fn masked(value: &Value, depth: usize) -> Boxed<'_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(b) => Box::new(CelBool::from(*b)),
        Value::Number(n) => number(n),
        Value::String(s) => borrowed(s),
        Value::Array(items) if depth < mask::DEPTH_MAX => {
            list(items.iter().map(|item| masked(item, depth + 1)))
        }
        Value::Array(_) => list([]),
        Value::Object(members) => masked_members(members, depth),
    }
}

fn masked_members(members: &Map<String, Value>, depth: usize) -> Boxed<'_> {
    let count = if depth < mask::DEPTH_MAX {
        members.len()
    } else {
        0
    };
    map(members.iter().take(count).map(|(name, value)| {
        let value = if mask::hides(name) {
            borrowed(mask::MASK)
        } else {
            masked(value, depth + 1)
        };
        (name.as_str(), value)
    }))
}

fn number(number: &Number) -> Boxed<'static> {
    match (number.as_i64(), number.as_u64()) {
        (Some(integer), _) if integer.unsigned_abs() > EXACT_MAX => Box::new(CelInt::from(integer)),
        (None, Some(integer)) => Box::new(CelUInt::from(integer)),
        _ => double(number.as_f64().unwrap_or_default()),
    }
}

fn double(number: f64) -> Boxed<'static> {
    Box::new(CelDouble::from(number))
}

fn borrowed(text: &str) -> Boxed<'_> {
    Box::new(CelString::from(text))
}

fn list<'v>(items: impl IntoIterator<Item = Boxed<'v>>) -> Boxed<'v> {
    let items: Vec<_> = items.into_iter().collect();
    Box::new(CelList::from(items))
}

fn map<'v>(members: impl IntoIterator<Item = (&'v str, Boxed<'v>)>) -> Boxed<'v> {
    let members = members
        .into_iter()
        .map(|(name, value)| (CelMapKey::from(name), value));
    Box::new(CelMap::from(members.collect::<HashMap<_, _>>()))
}

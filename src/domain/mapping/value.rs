//! CEL values: made from what is stored, weighed, and turned into texts.

use std::collections::HashMap;
use std::fmt::Write as _;

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional,
    CelString, CelUInt,
};
use cel::common::value::Val;
use serde_json::{Map, Number, Value};

use super::mask;

/// A value that may borrow what is stored.
pub(super) type Boxed<'v> = Box<dyn Val + 'v>;

/// Bytes of a text that weigh as much as a value of their own.
const BYTES_PER_UNIT: usize = 32;
/// Whole numbers up to here are exact as the doubles that rules expect (JSON's only number type).
const EXACT_MAX: u64 = 1 << 53;

/// What rules see of stored JSON: masked, numbers as doubles. Whole numbers that a double cannot
/// hold stay whole. Texts are borrowed.
pub(super) fn masked(value: &Value, depth: usize) -> Boxed<'_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(b) => Box::new(CelBool::from(*b)),
        Value::Number(n) => number(n),
        Value::String(s) => text(s),
        Value::Array(items) if depth < mask::DEPTH_MAX => {
            list(items.iter().map(|item| masked(item, depth + 1)))
        }
        Value::Array(_) => list([]),
        Value::Object(members) => masked_members(members, depth),
    }
}

/// The same of an object's members.
pub(super) fn masked_members(members: &Map<String, Value>, depth: usize) -> Boxed<'_> {
    let kept = if depth < mask::DEPTH_MAX {
        members.len()
    } else {
        0
    };
    map(members.iter().take(kept).map(|(name, value)| {
        let value = if mask::hides(name) {
            text(mask::MASK)
        } else {
            masked(value, depth + 1)
        };
        (name.as_str(), value)
    }))
}

fn number(number: &Number) -> Boxed<'static> {
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) if whole.unsigned_abs() > EXACT_MAX => Box::new(CelInt::from(whole)),
        (None, Some(whole)) => Box::new(CelUInt::from(whole)),
        _ => double(number.as_f64().unwrap_or_default()),
    }
}

pub(super) fn double(number: f64) -> Boxed<'static> {
    Box::new(CelDouble::from(number))
}

pub(super) fn text(text: &str) -> Boxed<'_> {
    Box::new(CelString::from(text))
}

pub(super) fn owned_text(text: String) -> Boxed<'static> {
    Box::new(CelString::from(text))
}

pub(super) fn list<'v>(items: impl IntoIterator<Item = Boxed<'v>>) -> Boxed<'v> {
    Box::new(CelList::from(Vec::from_iter(items)))
}

pub(super) fn map<'v>(members: impl IntoIterator<Item = (&'v str, Boxed<'v>)>) -> Boxed<'v> {
    let members = members
        .into_iter()
        .map(|(name, value)| (CelMapKey::from(name), value));
    Box::new(CelMap::from(members.collect::<HashMap<_, _>>()))
}

/// What a value weighs with everything in it: one unit for each value and for every
/// [`BYTES_PER_UNIT`] of its texts. Stops counting above `max`.
pub(super) fn weight(value: &dyn Val, max: usize) -> usize {
    let mut units = 0;
    add_weight(value, max, &mut units);
    units
}

fn add_weight(value: &dyn Val, max: usize, units: &mut usize) {
    *units += 1;
    if *units > max {
        return;
    }
    if let Some(text) = value.downcast_ref::<CelString>() {
        *units += text.inner().len() / BYTES_PER_UNIT;
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        *units += bytes.inner().len() / BYTES_PER_UNIT;
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        for item in list.inner() {
            add_weight(item.as_ref(), max, units);
            if *units > max {
                break;
            }
        }
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        for (key, item) in map.inner() {
            add_weight(key.inner(), max, units);
            add_weight(item.as_ref(), max, units);
            if *units > max {
                break;
            }
        }
    } else if let Some(optional) = value.downcast_ref::<CelOptional>()
        && let Some(inner) = optional.option()
    {
        add_weight(inner, max, units);
    }
}

/// The text that stands for a value in a condition (domain rule 6.4): texts as they are, `True` and
/// `False`, nothing for `null`, numbers in their shortest form, lists and maps as JSON. `None` for
/// what has no text: bytes, times, types, optionals.
pub(super) fn shown(value: &dyn Val) -> Option<String> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        Some(text.inner().to_owned())
    } else if let Some(b) = value.downcast_ref::<CelBool>() {
        Some(if *b.inner() { "True" } else { "False" }.to_owned())
    } else if value.downcast_ref::<CelNull>().is_some() {
        Some(String::new())
    } else {
        json(value)
    }
}

/// Compact JSON, the members of maps sorted. `None` for what JSON has no form for.
pub(super) fn json(value: &dyn Val) -> Option<String> {
    let mut out = String::new();
    write_json(value, &mut out).map(|()| out)
}

fn write_json(value: &dyn Val, out: &mut String) -> Option<()> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        out.push_str(&Value::from(text.inner()).to_string());
    } else if let Some(b) = value.downcast_ref::<CelBool>() {
        out.push_str(if *b.inner() { "true" } else { "false" });
    } else if value.downcast_ref::<CelNull>().is_some() {
        out.push_str("null");
    } else if let Some(number) = value.downcast_ref::<CelInt>() {
        write!(out, "{}", number.inner()).ok()?;
    } else if let Some(number) = value.downcast_ref::<CelUInt>() {
        write!(out, "{}", number.inner()).ok()?;
    } else if let Some(number) = value.downcast_ref::<CelDouble>() {
        let number = *number.inner();
        if !number.is_finite() {
            return None;
        }
        write!(out, "{number}").ok()?;
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        out.push('[');
        for (at, item) in list.inner().iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_json(item.as_ref(), out)?;
        }
        out.push(']');
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut members: Vec<_> = map.inner().iter().collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        out.push('{');
        for (at, (key, item)) in members.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            let name = shown(key.inner())?;
            out.push_str(&Value::from(name).to_string());
            out.push(':');
            write_json(item.as_ref(), out)?;
        }
        out.push('}');
    } else {
        return None;
    }
    Some(())
}

//! Weighs CEL values, and formats them.

use std::fmt::Write as _;

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelNull, CelOptional, CelString, CelUInt,
};
use cel::common::value::Val;
use serde_json::Value;

/// A value that may borrow its source.
pub(crate) type Boxed<'v> = Box<dyn Val + 'v>;

/// Bytes of a text that weigh one unit.
const BYTES_PER_UNIT: usize = 32;

/// The weight of a value with everything in it: one unit for each value and for every [`BYTES_PER_UNIT`] of its
/// texts. Stops counting above `max`.
pub(crate) fn weight(value: &dyn Val, max: usize) -> usize {
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

/// The text form of a value: texts unchanged, `True` and `False`, nothing for `null`, numbers in their shortest
/// form, lists and maps as JSON. `None` for bytes, times, types, optionals.
pub(crate) fn text(value: &dyn Val) -> Option<String> {
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

/// The value as a whole number, of any number type.
pub(crate) fn integer(value: &dyn Val) -> Option<i64> {
    if let Some(number) = value.downcast_ref::<CelInt>() {
        Some(*number.inner())
    } else if let Some(number) = value.downcast_ref::<CelUInt>() {
        i64::try_from(*number.inner()).ok()
    } else {
        // The text of a double has neither point nor exponent if it is whole.
        let number = value.downcast_ref::<CelDouble>()?;
        number.inner().to_string().parse().ok()
    }
}

/// Compact JSON with sorted members. `None` for values without a JSON form.
pub(crate) fn json(value: &dyn Val) -> Option<String> {
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
            let name = text(key.inner())?;
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

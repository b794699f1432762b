//! Faults that only deserialization finds, such as an unknown member of an entry. Deserialization stops at the first
//! one. So each is reported as a fault of a setting and removed from the values, and the next run finds the next one.

use figment::error::{Actual, Kind};
use figment::value::Value;

use super::fault::SettingFault;
use super::layer::Values;
use super::table::likeliest;

/// Takes the cause of a fault out of what is given. Gives the fault, and whether anything was taken out.
///
/// A member that is not known is taken out alone, or put in the place of the one that was meant: faults of the other
/// members are found, too. Otherwise the whole setting goes.
pub(super) fn take_out(error: &figment::Error, given: &mut Values) -> (SettingFault, bool) {
    let path = error.path.join(".");
    let of = |key: &str| path == key || path.starts_with(&format!("{key}."));
    let found = given
        .values_mut()
        .find(|given| given.setting.place().is_some_and(of));
    let Some(found) = found else {
        let text = format!("{}: {}", shown(&error.path), describe(&error.kind));
        return (SettingFault::of_key(path, text), false);
    };
    let depth = found
        .setting
        .place()
        .map_or(0, |place| place.split('.').count());
    let (key, origin) = (found.setting.key, found.origin_of(&path));
    let mut members = error.path.get(depth..).unwrap_or_default().to_vec();
    if let Kind::UnknownField(name, known) = &error.kind {
        members.pop_if(|last| last == name);
        let meant = likeliest(name, known.iter().copied());
        if move_member(&mut found.value, &members, name, meant) {
            let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            members.push(name.clone());
            let member = shown_members(&members);
            let text = format!("{key}{member} (from {origin}): there is no such member{hint}");
            return (SettingFault::of_value(key, text), true);
        }
    }
    let (member, said) = (shown_members(&members), describe(&error.kind));
    let text = format!("{key}{member} (from {origin}): {said}");
    given.remove(key);
    (SettingFault::of_key(path, text), true)
}

/// Takes a member out of the entry at a path, and puts its value in the place of another one that is not there.
/// Whether there was such a member.
fn move_member(value: &mut Value, path: &[String], name: &str, meant: Option<&str>) -> bool {
    let mut place = value;
    for step in path {
        let next = match place {
            Value::Dict(_, members) => members.get_mut(step),
            Value::Array(_, items) => step.parse().ok().and_then(|at: usize| items.get_mut(at)),
            _ => None,
        };
        let Some(next) = next else { return false };
        place = next;
    }
    let Value::Dict(_, members) = place else {
        return false;
    };
    let Some(value) = members.remove(name) else {
        return false;
    };
    if let Some(meant) = meant {
        members.entry(meant.to_owned()).or_insert(value);
    }
    true
}

/// A path as people write it: `server.jwt.configs[0].issuer_url`.
fn shown(path: &[String]) -> String {
    shown_members(path).trim_start_matches('.').to_owned()
}

/// The end of a path.
fn shown_members(path: &[String]) -> String {
    let step = |step: &String| match step.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{step}"),
    };
    path.iter().map(step).collect()
}

/// What is wrong, in the words of other faults.
fn describe(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            format!("{} is not {}", value(found), plain(expected))
        }
        Kind::UnknownVariant(found, known) => {
            format!("\"{found}\" is not one of: {}", known.join(", "))
        }
        Kind::MissingField(name) => format!("{name} is required"),
        Kind::DuplicateField(name) => format!("{name} is there twice"),
        other => other.to_string(),
    }
}

/// A value that was found.
fn value(found: &Actual) -> String {
    match found {
        Actual::Bool(truth) => truth.to_string(),
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Char(letter) => format!("\"{letter}\""),
        Actual::Str(text) => format!("{text:?}"),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "an object".to_owned(),
        Actual::Unit | Actual::Option => "nothing".to_owned(),
        other => other.to_string(),
    }
}

/// What serde expects, in plain words.
fn plain(expected: &str) -> String {
    let whole = [
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "usize", "isize",
    ];
    match expected {
        "a boolean" => "true or false".to_owned(),
        "a string" | "string" => "a text".to_owned(),
        "a sequence" | "sequence" => "a list".to_owned(),
        "a map" | "map" => "an object".to_owned(),
        text if text.starts_with("struct ") => "an object".to_owned(),
        text if whole.contains(&text) => "a whole number that fits".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_expectations_are_said_in_plain_words() {
        for (kind, expected) in [
            (
                Kind::InvalidType(Actual::Str("x".to_owned()), "a sequence".to_owned()),
                "\"x\" is not a list",
            ),
            (
                Kind::InvalidType(Actual::Map, "a boolean".to_owned()),
                "an object is not true or false",
            ),
            (
                Kind::InvalidValue(Actual::Unsigned(70_000), "u16".to_owned()),
                "70000 is not a whole number that fits",
            ),
            (
                Kind::InvalidType(Actual::Unsigned(1), "struct EntityConfig".to_owned()),
                "1 is not an object",
            ),
        ] {
            assert_eq!(describe(&kind), expected);
        }
    }

    #[test]
    fn places_in_lists_stand_in_brackets() {
        let path = ["server", "jwt", "configs", "0", "header"].map(str::to_owned);
        assert_eq!(shown(&path), "server.jwt.configs[0].header");
    }
}

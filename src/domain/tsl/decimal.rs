//! Decimal numbers of any size as text: which texts are numbers, their order, and how PostgreSQL writes them.

use std::cmp::Ordering;

/// Longest text of a spec that counts as a number, in characters: that of the statement for searches.
const CHARACTERS_MAX: usize = 400;
/// Digits of an exponent at most, as there.
const EXPONENT_DIGITS_MAX: usize = 3;

/// Whether a text of a spec counts as a number: `-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?`, and not too long.
pub(super) fn is_number(text: &str) -> bool {
    if text.len() > CHARACTERS_MAX {
        return false;
    }
    let positive = text.strip_prefix('-').unwrap_or(text);
    let (decimal, exponent) = match positive.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, Some(exponent)),
        None => (positive, None),
    };
    let (whole, fraction) = match decimal.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (decimal, None),
    };
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        digits.len() <= EXPONENT_DIGITS_MAX && are_digits(digits)
    };
    are_digits(whole) && fraction.is_none_or(are_digits) && exponent.is_none_or(is_exponent)
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits times a power of ten.
struct Decimal {
    is_negative: bool,
    /// Without a point, perhaps with zeros at both ends.
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Self {
        let (is_negative, positive) = match text.strip_prefix('-') {
            Some(positive) => (true, positive),
            None => (false, text),
        };
        let (decimal, exponent) = positive.split_once(['e', 'E']).unwrap_or((positive, "0"));
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        Self {
            is_negative,
            digits: format!("{whole}{fraction}"),
            exponent: exponent.parse::<i64>().unwrap_or(0).saturating_sub(places),
        }
    }

    /// −1, 0 or 1.
    fn sign(&self) -> i8 {
        match (
            self.digits.bytes().all(|digit| digit == b'0'),
            self.is_negative,
        ) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// The place of the first digit that is not zero, and the digits from there on: of numbers above zero the one with
    /// the higher place is larger, and of two with one place the one with the larger digits.
    fn magnitude(&self) -> (i64, &str) {
        let digits = self.digits.trim_start_matches('0');
        let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let place = self.exponent.saturating_add(count);
        (place, digits.trim_end_matches('0'))
    }
}

/// The exact order of two texts that are numbers.
pub(super) fn order(one: &str, other: &str) -> Ordering {
    let (one, other) = (Decimal::of(one), Decimal::of(other));
    let (signs, is_negative) = ((one.sign(), other.sign()), one.is_negative);
    match signs {
        (0, 0) => Ordering::Equal,
        (one, other) if one != other => one.cmp(&other),
        _ if is_negative => other.magnitude().cmp(&one.magnitude()),
        _ => one.magnitude().cmp(&other.magnitude()),
    }
}

/// A number of a JSON text as PostgreSQL writes it: without an exponent, with as many places as were written.
pub(super) fn plain(number: &str) -> String {
    let decimal = Decimal::of(number);
    let mut digits = decimal.digits.clone();
    let places = match usize::try_from(decimal.exponent) {
        Ok(zeros) => {
            digits.push_str(&"0".repeat(zeros));
            0
        }
        Err(_) => usize::try_from(decimal.exponent.unsigned_abs()).unwrap_or(0),
    };
    // One digit at least stands before the point.
    let missing = (places + 1).saturating_sub(digits.len());
    digits.insert_str(0, &"0".repeat(missing));
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    let sign = if decimal.sign() < 0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        for (written, plainly) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("0e5", "0"),
            ("0e-5", "0.00000"),
            ("5", "5"),
            ("-5", "-5"),
            ("1.50", "1.50"),
            ("1e3", "1000"),
            ("1.5e3", "1500"),
            ("1.50e1", "15.0"),
            ("100e-2", "1.00"),
            ("1e-7", "0.0000001"),
            ("-1.25e-3", "-0.00125"),
            ("1.5e+2", "150"),
            ("9007199254740993", "9007199254740993"),
        ] {
            assert_eq!(plain(written), plainly, "{written}");
        }
        assert_eq!(plain("1e300"), format!("1{}", "0".repeat(300)));
    }

    #[test]
    fn some_texts_are_numbers() {
        for text in [
            "0",
            "-1",
            "007",
            "1.5",
            "-0.0",
            "1e5",
            "1E+5",
            "2.5e-999",
            &"9".repeat(400),
        ] {
            assert!(is_number(text), "{text}");
        }
        for text in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "1\n",
            "1.",
            ".5",
            "1e",
            "1e+",
            "1e1000",
            "1e0001",
            "0x1",
            "NaN",
            "1_0",
            "--1",
            "1.5.2",
            "1e5e5",
            "1e5.5",
            "١",
            &"9".repeat(401),
        ] {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn numbers_of_any_size_have_their_exact_order() {
        let ascending = [
            "-1e300",
            "-10.5",
            "-10",
            "-9.99e0",
            "-1e-300",
            "0",
            "1e-999",
            "1e-300",
            "0.5",
            "1",
            "1.000000000000000000001",
            "9007199254740992",
            "9007199254740993",
            "9.1e15",
            "1e300",
            "9e999",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(order(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
        for (one, same) in [
            ("0", "-0.00"),
            ("0e5", "0"),
            ("1", "1.0"),
            ("1e3", "1000"),
            ("0.1e1", "001"),
            ("-120e-2", "-1.2"),
        ] {
            assert_eq!(order(one, same), Ordering::Equal, "{one} {same}");
        }
    }
}

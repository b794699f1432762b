//! Numbers of searches and of specs, compared exactly.

use std::fmt;
use std::sync::LazyLock;

use bigdecimal::{BigDecimal, ToPrimitive as _};
use regex::Regex;

/// Letters that multiply a number, in any case, each by a thousand times as much as the previous one.
pub(super) const SUFFIXES: &str = "kmgtp";
/// Which texts of a spec count as numbers, as a regular expression: also in the statements for searches.
pub const NUMBER_TEXT: &str = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$";
/// Longest text that does, in characters.
pub const NUMBER_CHARACTERS_MAX: usize = 400;

/// The number that a text of a spec is, if it counts as one.
pub(super) fn of_text(text: &str) -> Option<BigDecimal> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NUMBER_TEXT).ok());
    let is_number = text.len() <= NUMBER_CHARACTERS_MAX && FORM.as_ref()?.is_match(text);
    is_number.then(|| text.parse().ok())?
}

/// A decimal number of any reasonable size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number {
    /// As written, unless a suffix multiplied it.
    text: String,
    value: BigDecimal,
}

impl Number {
    /// Characters of one number at most.
    const LENGTH_MAX: usize = 100;
    /// Largest power of ten, and of one tenth, of its last digit.
    const EXPONENT_MAX: u64 = 300;

    /// Reads digits with an optional fraction and exponent, times an optional suffix such as `k` (1000) or `Ki`
    /// (1024). `None`: too large, too small or too long.
    pub(super) fn parse(digits: &str, suffix: &str) -> Option<Self> {
        if digits.len() > Self::LENGTH_MAX {
            return None;
        }
        let value: BigDecimal = digits.parse().ok()?;
        // Before anything writes the number out.
        if value.fractional_digit_count().unsigned_abs() > Self::EXPONENT_MAX {
            return None;
        }
        let number = match factor(suffix)? {
            1 => Self {
                text: digits.to_owned(),
                value,
            },
            factor => {
                let value = value * BigDecimal::from(factor);
                let text = value.to_string();
                Self { text, value }
            }
        };
        number.as_f64().is_finite().then_some(number)
    }

    pub(super) fn negated(&self) -> Self {
        let text = match self.text.strip_prefix('-') {
            Some(positive) => positive.to_owned(),
            None => format!("-{}", self.text),
        };
        let value = -&self.value;
        Self { text, value }
    }

    /// The text, which PostgreSQL reads as `numeric`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn value(&self) -> &BigDecimal {
        &self.value
    }

    /// The number, if it is an integer of that size.
    pub fn as_i64(&self) -> Option<i64> {
        self.value.to_i64().filter(|_| self.is_integer())
    }

    /// Whether it is an integer of any size.
    pub fn is_integer(&self) -> bool {
        self.value.is_integer()
    }

    /// The nearest floating-point number.
    pub fn as_f64(&self) -> f64 {
        self.text.parse().unwrap_or(f64::NAN)
    }
}

/// Shortest form, with an exponent from a million on: as the older service prints numbers.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scientific = format!("{:e}", self.as_f64());
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        match exponent.parse::<i32>().unwrap_or(0) {
            -4..6 => write!(f, "{}", self.as_f64()),
            exponent @ ..0 => write!(f, "{mantissa}e-{:02}", exponent.abs()),
            exponent => write!(f, "{mantissa}e+{exponent:02}"),
        }
    }
}

fn factor(suffix: &str) -> Option<u128> {
    let (letter, base): (&str, u128) = match suffix.strip_suffix('i') {
        Some(letter) => (letter, 1024),
        None => (suffix, 1000),
    };
    let power = match letter {
        "" => 0,
        letter => 1 + SUFFIXES.find(&letter.to_ascii_lowercase())?,
    };
    Some(base.pow(u32::try_from(power).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text, "").unwrap()
    }

    #[test]
    fn suffixes_multiply() {
        for (digits, suffix, product) in [
            ("5", "", "5"),
            ("5", "k", "5000"),
            ("5", "Ki", "5120"),
            ("1.5", "M", "1500000.0"),
            ("1.001", "k", "1001.000"),
            ("2", "Gi", "2147483648"),
            ("3e2", "t", "300000000000000"),
            ("9007199254740993", "k", "9007199254740993000"),
            ("1", "Pi", "1125899906842624"),
        ] {
            assert_eq!(Number::parse(digits, suffix).unwrap().as_str(), product);
        }
        assert_eq!(Number::parse("5", "x"), None);
    }

    #[test]
    fn numbers_beyond_all_sense_are_refused() {
        assert_eq!(Number::parse("1e301", ""), None);
        assert_eq!(Number::parse("1e-301", ""), None);
        assert_eq!(Number::parse("1e99999999999", ""), None);
        assert_eq!(Number::parse(&"1".repeat(101), ""), None);
        assert!(Number::parse(&"1".repeat(100), "").is_some());
        assert!(Number::parse("1e300", "").is_some());
        assert_eq!(Number::parse(&format!("{}e300", "9".repeat(30)), ""), None);
    }

    #[test]
    fn integers_are_known_as_such() {
        for (text, integer) in [
            ("5", Some(5)),
            ("007", Some(7)),
            ("5.0", Some(5)),
            ("3e9", Some(3_000_000_000)),
            ("9007199254740993", Some(9_007_199_254_740_993)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("1.5", None),
            ("1.00000000000000000001", None),
            ("0.000", Some(0)),
            ("1200e-2", Some(12)),
            ("1e300", None),
            ("1e-300", None),
        ] {
            assert_eq!(number(text).as_i64(), integer, "{text}");
        }
        let thousand = Number::parse("1.001", "k").unwrap();
        assert_eq!(thousand.as_i64(), Some(1001));
        assert!(number("1e300").is_integer() && !number("1e-300").is_integer());
        assert_eq!(number("5").negated().as_i64(), Some(-5));
        assert_eq!(number("5").negated().negated(), number("5"));
    }

    #[test]
    fn numbers_are_printed_as_the_go_service_prints_them() {
        for (text, printed) in [
            ("3.5", "3.5"),
            ("3e9", "3e+09"),
            ("3000000000", "3e+09"),
            ("999999", "999999"),
            ("1234567", "1.234567e+06"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0", "0"),
        ] {
            assert_eq!(number(text).to_string(), printed);
        }
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
            assert!(of_text(text).is_some(), "{text}");
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
            assert!(of_text(text).is_none(), "{text}");
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
                let order = of_text(one).cmp(&of_text(other));
                assert_eq!(order, at.cmp(&other_at), "{one} {other}");
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
            assert_eq!(of_text(one), of_text(same), "{one} {same}");
        }
    }
}

//! Numbers of searches, exactly as written.

use std::fmt;

/// Letters that multiply a number, in any case, each by a thousand times as much as the one before it.
pub(super) const SUFFIXES: &str = "kmgtp";

/// A decimal number of any reasonable size. Stored as text, so that integers beyond 2^53 are compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number(String);

impl Number {
    /// Characters of one number at most.
    const LENGTH_MAX: usize = 100;
    /// Largest power of ten, and of one tenth, of its last digit.
    const EXPONENT_MAX: i32 = 300;

    /// Reads digits with an optional fraction and exponent, times an optional suffix such as `k` (1000) or `Ki`
    /// (1024). `None`: too large, too small or too long.
    pub(super) fn parse(digits: &str, suffix: &str) -> Option<Self> {
        if digits.len() > Self::LENGTH_MAX {
            return None;
        }
        let factor = factor(suffix)?;
        let number = if factor == 1 {
            Self(digits.to_owned())
        } else {
            let (mantissa, exponent) = parts(digits)?;
            let product = mantissa.parse::<u128>().ok()?.checked_mul(factor)?;
            Self(format!("{product}e{exponent}"))
        };
        let (_, exponent) = parts(digits)?;
        (exponent.abs() <= Self::EXPONENT_MAX && number.as_f64().is_finite()).then_some(number)
    }

    pub(super) fn negated(&self) -> Self {
        match self.0.strip_prefix('-') {
            Some(positive) => Self(positive.to_owned()),
            None => Self(format!("-{}", self.0)),
        }
    }

    /// The text, which PostgreSQL reads as `numeric`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number, if it is an integer of that size.
    pub fn as_i64(&self) -> Option<i64> {
        let (sign, digits) = match self.0.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", self.0.as_str()),
        };
        let (mantissa, exponent) = parts(digits)?;
        let whole = match usize::try_from(exponent) {
            Ok(zeros) => format!("{mantissa}{}", "0".repeat(zeros)),
            Err(_) => whole(&mantissa, exponent.unsigned_abs() as usize)?.to_owned(),
        };
        format!("{sign}{whole}").parse().ok()
    }

    /// Whether it is an integer of any size.
    pub fn is_integer(&self) -> bool {
        let parts = parts(self.0.trim_start_matches('-'));
        parts.is_some_and(|(mantissa, exponent)| {
            exponent >= 0 || whole(&mantissa, exponent.unsigned_abs() as usize).is_some()
        })
    }

    /// The nearest floating-point number.
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
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

/// The digits without their point, and the power of ten to multiply them by.
fn parts(digits: &str) -> Option<(String, i32)> {
    let (decimal, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let places = i32::try_from(fraction.len()).ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(places)?;
    Some((format!("{whole}{fraction}"), exponent))
}

/// The digits without their last `places` digits, if those are zeros.
fn whole(mantissa: &str, places: usize) -> Option<&str> {
    let (whole, fraction) = mantissa.split_at(mantissa.len().saturating_sub(places));
    let is_integer = fraction.bytes().all(|b| b == b'0');
    is_integer.then_some(if whole.is_empty() { "0" } else { whole })
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
            ("5", "k", "5000e0"),
            ("5", "Ki", "5120e0"),
            ("1.5", "M", "15000000e-1"),
            ("1.001", "k", "1001000e-3"),
            ("2", "Gi", "2147483648e0"),
            ("3e2", "t", "3000000000000e2"),
            ("9007199254740993", "k", "9007199254740993000e0"),
            ("1", "Pi", "1125899906842624e0"),
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
        assert_eq!(Number::parse(&"9".repeat(30), "P"), None);
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
    fn numbers_are_shown_as_the_older_service_shows_them() {
        for (text, shown) in [
            ("3.5", "3.5"),
            ("3e9", "3e+09"),
            ("3000000000", "3e+09"),
            ("999999", "999999"),
            ("1234567", "1.234567e+06"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0", "0"),
        ] {
            assert_eq!(number(text).to_string(), shown);
        }
    }
}

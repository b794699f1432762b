//! Numbers of searches, exactly as they are written.

use std::fmt;

/// A decimal number of any size that is sensible. Kept as text, so that integers beyond 2^53 are
/// compared exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number(String);

impl Number {
    /// Most characters of one number.
    const LENGTH_MAX: usize = 100;
    /// Largest power of ten, and of one tenth.
    const EXPONENT_MAX: i32 = 300;

    /// Reads digits with an optional fraction and exponent, times an optional suffix such as `k`
    /// (1000) or `Ki` (1024). `None`: too large, too small or too long.
    pub(super) fn parse(digits: &str, suffix: &str) -> Option<Self> {
        if digits.len() > Self::LENGTH_MAX {
            return None;
        }
        if let Some((_, exponent)) = digits.split_once(['e', 'E'])
            && exponent.parse::<i32>().ok()?.abs() > Self::EXPONENT_MAX
        {
            return None;
        }
        let factor = factor(suffix)?;
        if factor == 1 {
            return Some(Self(digits.to_owned()));
        }
        let exact = digits.parse::<u128>().ok();
        if let Some(product) = exact.and_then(|n| n.checked_mul(factor)) {
            return Some(Self(product.to_string()));
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 1024^5, which is exact")]
        let product = digits.parse::<f64>().ok()? * factor as f64;
        Some(Self(product.to_string()))
    }

    /// The same number below zero.
    pub(super) fn negated(&self) -> Self {
        match self.0.strip_prefix('-') {
            Some(positive) => Self(positive.to_owned()),
            None => Self(format!("-{}", self.0)),
        }
    }

    /// The text, which PostgreSQL reads as `numeric`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number, if it is an integer of that size.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        /// Integers up to here are exact in floating point.
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        if let Ok(integer) = self.0.parse() {
            return Some(integer);
        }
        let float = self.as_f64();
        #[expect(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
        (float.fract() == 0.0 && float.abs() <= EXACT_MAX).then_some(float as i64)
    }

    /// The nearest floating-point number.
    #[must_use]
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

fn factor(suffix: &str) -> Option<u128> {
    let (letter, base): (&str, u128) = match suffix.strip_suffix('i') {
        Some(letter) => (letter, 1024),
        None => (suffix, 1000),
    };
    let power = match letter {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        "p" | "P" => 5,
        _ => return None,
    };
    Some(base.pow(power))
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
            ("1.5", "M", "1500000"),
            ("2", "Gi", "2147483648"),
            ("3", "t", "3000000000000"),
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
            ("1e300", None),
        ] {
            assert_eq!(number(text).as_i64(), integer, "{text}");
        }
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

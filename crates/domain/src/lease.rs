//! Leases: of several copies of a program, the holder of the lease works.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Constraint, ResourceName, Violation};

/// The name of a lease, in the syntax of a DNS label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseName(ResourceName);

impl LeaseName {
    /// Longest name, in bytes.
    pub const BYTES_MAX: usize = 63;

    /// # Errors
    ///
    /// The name is empty, too long, or has other characters than those of a DNS label.
    pub fn parse(text: &str) -> Result<Self, Violation> {
        ResourceName::parse(text.to_owned(), 1, Self::BYTES_MAX).map(Self)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// One copy of a program, by a name that no other copy has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder(String);

impl LeaseHolder {
    /// Longest name of a holder, in characters.
    pub const CHARACTERS_MAX: usize = 253;

    /// # Errors
    ///
    /// The name is blank, too long, or has control characters, or blanks at an end.
    pub fn parse(text: String) -> Result<Self, Violation> {
        let violation =
            |constraint, message: String| Err(Violation::new("holder", constraint, message));
        if text.trim().is_empty() {
            return violation(Constraint::Required, "holder is required".to_owned());
        }
        if text.chars().count() > Self::CHARACTERS_MAX {
            let message = format!("holder must be at most {} characters", Self::CHARACTERS_MAX);
            return violation(Constraint::MaxLength, message);
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            let message = "holder must not begin or end with blanks, or contain control characters";
            return violation(Constraint::Pattern, message.to_owned());
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How long a lease lasts after it was acquired or renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseDuration(i32);

impl LeaseDuration {
    /// Longest duration. A holder that ends without releasing the lease blocks the other copies for that time.
    pub const SECONDS_MAX: i32 = 3600;

    /// # Errors
    ///
    /// The duration is shorter than a second or longer than an hour.
    pub fn parse(seconds: i32) -> Result<Self, Violation> {
        let violation = |constraint, message: String| {
            Err(Violation::new("duration_seconds", constraint, message).with_value(seconds))
        };
        let max = Self::SECONDS_MAX;
        match seconds {
            ..1 => violation(Constraint::Min, "duration_seconds must be >= 1".to_owned()),
            _ if seconds > max => {
                let message = format!("duration_seconds must be <= {max}");
                violation(Constraint::Max, message)
            }
            _ => Ok(Self(seconds)),
        }
    }

    pub fn seconds(self) -> i32 {
        self.0
    }
}

/// A request to acquire or renew a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseClaim {
    pub holder: LeaseHolder,
    pub duration: LeaseDuration,
}

/// A lease and its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    pub name: String,
    pub holder: String,
    /// Since when the holder has held it without a break.
    pub acquired_at: DateTime<Utc>,
    pub renewed_at: DateTime<Utc>,
    /// When another copy may acquire it.
    pub expires_at: DateTime<Utc>,
}

impl HeldLease {
    /// The holder's choice of the time between a renewal and the expiry.
    pub fn duration(&self) -> TimeDelta {
        self.expires_at - self.renewed_at
    }

    pub fn is_held_by(&self, holder: &LeaseHolder) -> bool {
        self.holder == holder.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        let longest = "a".repeat(LeaseName::BYTES_MAX);
        for name in ["a", "dns-1", &longest] {
            assert_eq!(LeaseName::parse(name).unwrap().as_str(), name);
        }
        let longer = format!("{longest}a");
        for (name, constraint) in [
            ("", Constraint::Required),
            (&longer, Constraint::MaxLength),
            ("-a", Constraint::Pattern),
            ("A", Constraint::Pattern),
            ("a.b", Constraint::Pattern),
        ] {
            let violation = LeaseName::parse(name).unwrap_err();
            assert_eq!(
                (&*violation.field, violation.constraint),
                ("name", constraint)
            );
        }
    }

    #[test]
    fn holders_are_short_printable_texts() {
        let longest = "é".repeat(LeaseHolder::CHARACTERS_MAX);
        for holder in ["pod-7c9", "Büro 1 (links)", &longest] {
            let parsed = LeaseHolder::parse(holder.to_owned()).unwrap();
            assert_eq!(parsed.as_str(), holder);
        }
        let longer = format!("{longest}é");
        for (holder, constraint) in [
            ("", Constraint::Required),
            (" ", Constraint::Required),
            (&longer, Constraint::MaxLength),
            ("a\nb", Constraint::Pattern),
            ("a\0", Constraint::Pattern),
            (" a", Constraint::Pattern),
            ("a ", Constraint::Pattern),
        ] {
            let violation = LeaseHolder::parse(holder.to_owned()).unwrap_err();
            assert_eq!(
                (&*violation.field, violation.constraint),
                ("holder", constraint)
            );
        }
    }

    #[test]
    fn durations_are_between_a_second_and_an_hour() {
        for seconds in [1, 15, 3600] {
            assert_eq!(LeaseDuration::parse(seconds).unwrap().seconds(), seconds);
        }
        for (seconds, constraint) in [
            (i32::MIN, Constraint::Min),
            (0, Constraint::Min),
            (3601, Constraint::Max),
        ] {
            let violation = LeaseDuration::parse(seconds).unwrap_err();
            assert_eq!(violation.constraint, constraint, "{seconds}");
        }
    }
}

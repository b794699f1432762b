//! What units and machines are called.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name {
            /// Most comparisons end here, without a look at memory that is elsewhere.
            head: u64,
            text: Arc<str>,
        }

        impl $name {
            /// Takes a text that was checked where it came in.
            #[must_use]
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                let text = text.into();
                Self { head: head(&text), text }
            }

            /// Its text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.text
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.text
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.text.hash(state);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.text)
            }
        }
    };
}

text!(
    /// The full name of a unit, such as `web@1.service`. Ordered by bytes.
    UnitName
);
text!(
    /// The id of a machine, as systemd has it. Ordered by bytes.
    MachineId
);

/// The first eight bytes as a number, in the same order as the texts.
fn head(text: &str) -> u64 {
    let mut first = [0; 8];
    let length = text.len().min(8);
    first[..length].copy_from_slice(&text.as_bytes()[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_bytes(a in "[ab\0☃]{0,10}", b in "[ab\0☃]{0,10}") {
            let (left, right) = (UnitName::new(a.as_str()), UnitName::new(b.as_str()));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left == right, a == b);
        }
    }
}

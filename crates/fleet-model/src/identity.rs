//! Names that are cheap to clone, to compare and to look up.

/// Defines a name type, ordered by its bytes.
macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name {
            /// Most comparisons end here, without access to other memory.
            head: u64,
            text: std::sync::Arc<str>,
        }

        impl $name {
            fn unchecked(text: impl Into<std::sync::Arc<str>>) -> Self {
                let text = text.into();
                Self { head: crate::identity::head(&text), text }
            }

            pub fn as_str(&self) -> &str {
                &self.text
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.text
            }
        }

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.text.hash(state);
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.text)
            }
        }
    };
}

pub(crate) use identity;

/// The first eight bytes as a number, which sorts like the text.
pub(crate) fn head(text: &str) -> u64 {
    let mut first = [0; 8];
    let length = text.len().min(8);
    first[..length].copy_from_slice(&text.as_bytes()[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::unit::UnitName;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_bytes(a in "[ab\0☃]{0,10}", b in "[ab\0☃]{0,10}") {
            let (left, right) = (UnitName::stored(a.as_str()), UnitName::stored(b.as_str()));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left == right, a == b);
        }
    }
}

//! What units and machines are called.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The full name of a unit, such as `web@1.service`. Ordered by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(Arc<str>);

/// The id of a machine, as systemd has it. Ordered by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineId(Arc<str>);

macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// Takes a text that was checked where it came in.
            #[must_use]
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Its text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

text!(UnitName);
text!(MachineId);

//! Authenticates callers: tokens (RFC 7519), the keys that verify them, and the identity in their claims. It does not
//! know the requested route; permissions are checked in `http/identification`.
//!
//! ```text
//! header ▸ bearer ▸ token ▸ keys ◂ upkeep ◂ fetch (address, file)
//!                     └───▸ claims ▸ identity
//! ```

mod authenticator;
mod bearer;
mod check;
mod claims;
mod config;
mod fetch;
mod gauges;
mod identity;
mod key;
mod keys;
mod live;
mod pace;
mod refusal;
mod signature;
mod token;
mod upkeep;

pub use authenticator::{Authentication, Authenticator, Need};
pub use bearer::HeaderField;
pub use check::{issuer_url, issuers};
pub use config::{Issuer, IssuerConfig};
pub use fetch::{KEY_SET_BYTES_MAX, KEYS_MAX};
pub use identity::IdentityError;
pub use pace::Pace;
pub use refusal::{AuthRefusal, TokenError};

//! Who may call: tokens that are taken and tokens that are not, and where the keys come from.

mod attacks;
mod caches;
mod files;
mod fleet;
mod identity;
mod issuers;
mod kubernetes;
mod metrics;
mod outages;
mod rotation;
mod signer;
pub(crate) mod tls;
mod watches;
mod world;

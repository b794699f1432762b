//! Digests of passes: a chain over the seals of all tenancies, so that a missing seal shows, even the newest of its tenancy.
//!
//! ```text
//! digest of a pass = SHA-256(for each seal of the pass, in the order of tenancies: its text ‖ "\n")
//! ```
//!
//! The text of each seal has the digest of the pass before; 32 zero bytes for the first one.

use sha2::{Digest as _, Sha256};

use super::{ChainHash, Seal};

/// Computes the digest of a pass.
#[derive(Debug, Clone, Default)]
pub(super) struct PassHasher(Sha256);

impl PassHasher {
    pub(super) fn add(&mut self, seal: &Seal) {
        self.0.update(seal.text());
        self.0.update("\n");
    }

    pub(super) fn finish(self) -> ChainHash {
        ChainHash(self.0.finalize().into())
    }
}

/// The digest of a pass with these seals, which are in the order of their tenancies.
pub(super) fn pass_hash<'a>(seals: impl IntoIterator<Item = &'a Seal>) -> ChainHash {
    let mut hasher = PassHasher::default();
    for seal in seals {
        hasher.add(seal);
    }
    hasher.finish()
}

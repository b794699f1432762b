//! Seals: a hash chain for each tenancy, over the entries in the order of the trail.
//!
//! ```text
//! hash of a seal = SHA-256(previous hash ‖ for each entry: its line ‖ "\n")
//! previous hash  = that of the seal before it in its chain; 32 zero bytes for the first one
//! ```
//!
//! A pass seals everything between two positions, for all tenancies (`docs/decisions/0076-audit-seals.md`). Its seals have the
//! digest of the pass.

use std::fmt;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use super::TrailPosition;
use crate::domain::Tenancy;

/// A SHA-256 hash. Its text is in hexadecimal digits, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The previous hash of a first seal, and of a first pass.
    pub const ZERO: Self = Self([0; 32]);

    pub fn parse(text: &str) -> Option<Self> {
        let is_hash = text.len() == 64 && text.bytes().all(|b| b"0123456789abcdef".contains(&b));
        let mut hash = Self::ZERO;
        for (byte, digits) in hash.0.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        is_hash.then_some(hash)
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The entries of one tenancy in one pass, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    pub tenancy: Tenancy,
    /// 1, 2, … in each chain.
    pub number: i64,
    /// The pass begins after this position: the end of the pass before.
    pub begin: TrailPosition,
    /// Position of the last entry of the pass, of whatever tenancy.
    pub end: TrailPosition,
    /// Number of sealed entries.
    pub entries: i32,
    /// Time of the newest entry of the pass, of whatever tenancy.
    pub newest_at: DateTime<Utc>,
    pub previous: ChainHash,
    pub hash: ChainHash,
    pub sealed_at: DateTime<Utc>,
    /// Digest of the pass before.
    pub pass_previous: ChainHash,
    /// Digest of its pass, over the texts of all its seals.
    pub pass_hash: ChainHash,
}

impl Seal {
    /// The end of its chain, if it is the last one.
    pub fn head(&self) -> ChainHead {
        ChainHead {
            number: self.number,
            hash: self.hash,
        }
    }

    pub fn pass(&self) -> PassHead {
        PassHead {
            end: self.end,
            hash: self.pass_hash,
        }
    }
}

/// The end of a chain: number and hash of its last seal. The default is that of a chain without seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    pub number: i64,
    pub hash: ChainHash,
}

impl Default for ChainHead {
    fn default() -> Self {
        Self {
            number: 0,
            hash: ChainHash::ZERO,
        }
    }
}

/// The end of a pass, and its digest. The default is that of a trail without passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassHead {
    pub end: TrailPosition,
    pub hash: ChainHash,
}

impl Default for PassHead {
    fn default() -> Self {
        Self {
            end: TrailPosition::START,
            hash: ChainHash::ZERO,
        }
    }
}

/// Computes the hash of a seal from lines.
#[derive(Debug, Clone)]
pub(super) struct ChainHasher {
    hasher: Sha256,
    pub(super) entries: i32,
}

impl ChainHasher {
    pub(super) fn after(previous: ChainHash) -> Self {
        Self {
            hasher: Sha256::new_with_prefix(previous.0),
            entries: 0,
        }
    }

    pub(super) fn add(&mut self, line: &str) {
        self.hasher.update(line);
        self.hasher.update("\n");
        self.entries = self.entries.saturating_add(1);
    }

    pub(super) fn finish(self) -> ChainHash {
        ChainHash(self.hasher.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_was_printed() {
        let hash = ChainHash(std::array::from_fn(|index| {
            u8::try_from(index * 8 % 256).unwrap()
        }));
        assert_eq!(ChainHash::parse(&hash.to_string()), Some(hash));
        assert!(hash.to_string().starts_with("000810182028"), "{hash}");
        let text = hash.to_string();
        for wrong in [
            "",
            "00",
            &text[1..],
            &(text.clone() + "0"),
            &text.to_uppercase(),
            &"+1".repeat(32),
            &"é".repeat(32),
        ] {
            assert_eq!(ChainHash::parse(wrong), None, "{wrong}");
        }
    }
}

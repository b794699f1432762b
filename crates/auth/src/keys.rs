//! The keys of one issuer at one moment, and the tokens that they have verified.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::SHA256;

use super::TokenError;
use super::claims::Validity;
use super::identity::IdentityError;
use super::key::Key;
use super::token::Token;

/// Most keys that are tried for a token without `kid`.
const TRIES_MAX: usize = 16;
/// Number of remembered tokens.
const REMEMBERED_MAX: usize = 1024;

/// The claims of a token with a valid signature, issuer and audience. Its validity in time is checked with each
/// request.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) validity: Validity,
    pub(super) identity: Result<String, IdentityError>,
}

/// Key of remembered tokens.
pub(super) type TokenDigest = [u8; 32];

pub(super) fn digest(token: &str) -> TokenDigest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(ring::digest::digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

/// An immutable set of keys. A new set starts with no remembered tokens.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    keys: Vec<Arc<Key>>,
    remembered: Mutex<HashMap<TokenDigest, Arc<Verified>>>,
}

impl KeySet {
    pub(super) fn new(keys: Vec<Arc<Key>>) -> Self {
        Self {
            keys,
            remembered: Mutex::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Checks that one of these keys has signed the token.
    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), TokenError> {
        if let Some(kid) = &token.kid {
            let mut named = self.keys.iter().filter(|key| key.is_called(kid)).peekable();
            if named.peek().is_none() {
                return Err(TokenError::UnknownKey);
            }
            if !named.any(|key| key.fits(token)) {
                return Err(TokenError::Algorithm);
            }
        }
        let fitting = self.keys.iter().filter(|key| key.fits(token));
        if fitting.take(TRIES_MAX).any(|key| key.signed(token)) {
            Ok(())
        } else if token.kid.is_some() {
            Err(TokenError::Signature)
        } else {
            Err(TokenError::UnknownKey)
        }
    }

    /// A token that was verified before.
    pub(super) fn remembered(&self, digest: &TokenDigest) -> Option<Arc<Verified>> {
        let remembered = self.remembered.lock();
        let remembered = remembered.unwrap_or_else(PoisonError::into_inner);
        remembered.get(digest).cloned()
    }

    /// Remembers a verified token. Forgets all when there are too many, which costs little because few are in use at a
    /// time.
    pub(super) fn remember(&self, digest: TokenDigest, verified: Arc<Verified>) {
        let remembered = self.remembered.lock();
        let mut remembered = remembered.unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(digest, verified);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let set = KeySet::default();
        let claims = json!({"exp": 1});
        let verified = Arc::new(Verified {
            validity: Validity::of(claims.as_object().unwrap()).unwrap(),
            identity: Ok("a".to_owned()),
        });
        for number in 0..=REMEMBERED_MAX {
            let digest = digest(&number.to_string());
            assert!(set.remembered(&digest).is_none());
            set.remember(digest, verified.clone());
            assert!(set.remembered(&digest).is_some());
        }
        assert!(set.remembered.lock().unwrap().len() <= REMEMBERED_MAX);
    }
}

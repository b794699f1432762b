//! `continue`: a list taken up where an answer ended.
//!
//! The token is opaque to clients: URL-safe base64 of a JSON array with a version, a digest of the
//! list it belongs to, the number of the page that gave it, and the keys of that page's last item.
//! It is not signed: all it can say is where in the caller's own list a page begins.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::query::{Params, ParamsFault};
use crate::domain::page::Order;
use crate::domain::position::Position;
use crate::domain::tenancy::TenantScope;
use crate::domain::{Constraint, Violation, shown};

/// The parameters that say which resources a list has, and in which order.
const BINDING: [&str; 7] = [
    "search",
    "order",
    "orderBy",
    "kind",
    "includeDeleted",
    "ref_type",
    "ref_target_id",
];
/// Longest token, in bytes: one with a value for every key there is has less.
const TOKEN_BYTES_MAX: usize = 8192;
/// Raised when what a token holds, or what a field sorts by, changes its meaning.
const VERSION: u8 = 1;

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The number of that page.
    pub page: u32,
    /// Where its last item stands.
    pub position: Position,
}

/// Which list a token belongs to: its path and the parameters that select and sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListKey(String);

#[derive(Serialize, Deserialize)]
struct Token(u8, String, u32, Vec<Option<String>>);

impl ListKey {
    /// The key of the list that `path` and `params` ask for, as it is seen: where one tenant's list
    /// ends says something of what is in it, which is not for another.
    #[must_use]
    pub fn new(path: &str, params: &Params, view: &TenantScope) -> Self {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        };
        add(path);
        for name in BINDING {
            // Blank ones count as absent.
            let values = params
                .values(name)
                .map(str::trim)
                .filter(|value| !value.is_empty());
            for value in values {
                add(name);
                add(value);
            }
        }
        for (key, value) in view.tenancy().into_iter().flatten() {
            // No parameter is called so.
            add("tenancy ");
            add(key);
            add(value);
        }
        // Nobody gains by a collision: half of the digest is plenty.
        Self(BASE64.encode(&digest.finalize()[..16]))
    }
}

impl Continuation {
    /// The token for the list.
    #[must_use]
    pub fn encode(&self, list: &ListKey) -> String {
        let token = Token(VERSION, list.0.clone(), self.page, self.position.texts());
        // Plain texts and numbers: writing them cannot fail.
        BASE64.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(text: &str, list: &ListKey, order: &Order) -> Result<Self, &'static str> {
        const UNREADABLE: &str =
            "is not a token of this service: take `continue` from an answer as it stands there";
        if text.len() > TOKEN_BYTES_MAX {
            return Err(UNREADABLE);
        }
        let bytes = BASE64.decode(text).map_err(|_| UNREADABLE)?;
        let Token(version, key, page, texts) =
            serde_json::from_slice(&bytes).map_err(|_| UNREADABLE)?;
        if version != VERSION {
            return Err("is of another version of this service: start over without it");
        }
        if key != list.0 {
            return Err(
                "belongs to another list: send the path and the parameters of the list that gave it",
            );
        }
        let position = Position::parse(order, &texts).ok_or(UNREADABLE)?;
        Ok(Self { page, position })
    }
}

impl Params {
    /// `continue`, for the list that these parameters ask for in `order`.
    ///
    /// # Errors
    ///
    /// It is no token of this list; or a page number is asked for, too.
    pub fn continuation(
        &self,
        list: &ListKey,
        order: &Order,
    ) -> Result<Option<Continuation>, ParamsFault> {
        let Some(text) = self.get("continue") else {
            return Ok(None);
        };
        let found = if self.get("page").is_some() {
            Err("cannot be combined with page: it says itself where to begin")
        } else {
            Continuation::decode(text, list, order)
        };
        found.map(Some).map_err(|why| {
            let fault = Violation::new("continue", Constraint::Format, format!("continue {why}"));
            ParamsFault::Invalid(fault.with_value(shown(text)).into())
        })
    }
}

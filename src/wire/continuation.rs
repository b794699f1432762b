//! `continue`: a list taken up where an answer ended.
//!
//! The token is opaque to clients: URL-safe base64 of a JSON array with a version, a digest of the
//! list it belongs to, the number of the page that gave it, and the keys of that page's last item.
//! It is not signed: all it can say is where in the caller's own list a page begins.

use std::hash::{Hash as _, Hasher};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::query::{Params, ParamsFault};
use crate::domain::page::Order;
use crate::domain::position::RowPosition;
use crate::domain::tenancy::TenantScope;
use crate::domain::{Constraint, ListFilter, Violation, shown};

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
    pub position: RowPosition,
}

/// Which list a token belongs to: its path, its order, its filters and the tenant that sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListKey(String);

/// Takes the fields of any type that derives `Hash`, so that none can be left out.
#[derive(Default)]
struct ListDigest(Sha256);

impl Hasher for ListDigest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        u64::from_le_bytes(std::array::from_fn(|at| digest[at]))
    }
}

#[derive(Serialize, Deserialize)]
struct Token(u8, String, u32, Vec<Option<String>>);

impl ListKey {
    /// The key of the list at `path`, in the order that `params` ask for, with these filters. The
    /// tenant counts, because where a list ends says something about what is in it.
    pub fn new(path: &str, params: &Params, filters: &[ListFilter], view: &TenantScope) -> Self {
        let mut digest = ListDigest::default();
        let order = ["order", "orderBy"].map(|name| {
            let values = params.values(name).map(str::trim);
            values.filter(|v| !v.is_empty()).collect::<Vec<_>>()
        });
        (path, order, filters, view.tenancy()).hash(&mut digest);
        // A collision gains nothing: half of the digest is enough.
        Self(BASE64.encode(&digest.0.finalize()[..16]))
    }
}

impl Continuation {
    /// The token for the list.
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
        let position = RowPosition::parse(order, &texts).ok_or(UNREADABLE)?;
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

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;
    use crate::domain::ListFilterKind;

    /// Two values of each filter, as queries.
    fn values(kind: ListFilterKind) -> [&'static str; 2] {
        match kind {
            ListFilterKind::Kind => ["kind=Cluster", "kind=NodePool"],
            ListFilterKind::Search => ["search=generation>0", "search=generation>1"],
            ListFilterKind::IncludeDeleted => ["includeDeleted=true", "includeDeleted=false"],
            ListFilterKind::Reference => [
                "ref_type=channel&ref_target_id=019b7868-8e00-7000-8000-000000000001",
                "ref_type=channel&ref_target_id=019b7868-8e00-7000-8000-000000000002",
            ],
        }
    }

    fn key(query: &str) -> ListKey {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let params = Params::new(pairs.collect());
        let filters = params.filters(ListFilterKind::iter()).unwrap();
        ListKey::new("/clusters", &params, &filters, &TenantScope::ALL)
    }

    #[test]
    fn a_token_belongs_to_the_values_of_every_filter() {
        for kind in ListFilterKind::iter() {
            let [one, other] = values(kind).map(key);
            assert_eq!(one, key(values(kind)[0]), "{kind:?}");
            assert_ne!(one, other, "{kind:?}");
            assert_ne!(one, key(""), "{kind:?}");
            assert_ne!(other, key(""), "{kind:?}");
        }
    }
}

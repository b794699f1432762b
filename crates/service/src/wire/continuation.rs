//! `continue`: the token with which a client continues a list after the last item of an answer.
//!
//! The token is opaque to clients: URL-safe base64 of a JSON array with a version, a digest of its list, the number of
//! the page that returned it, and the keys of that page's last item. It is not signed: it can only say where in the
//! caller's own list a page begins.

use std::hash::{Hash as _, Hasher};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::query::{Params, ParamsError};
use hyperfleet_domain::page::Order;
use hyperfleet_domain::position::RowPosition;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{Constraint, ListFilter, Violation, excerpt};

/// Longest token, in bytes: one with a value for every key is shorter.
const TOKEN_BYTES_MAX: usize = 8192;
/// Incremented when the content of a token, or the sort key of a field, changes its meaning.
const VERSION: u8 = 1;

/// The end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    pub page: u32,
    /// The position of its last item.
    pub position: RowPosition,
}

/// Identifies a list: its path, its order, its filters and the tenant that sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListKey(String);

/// Hashes any type that derives `Hash`, so that no field is left out.
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
    /// The key of the list at `path`, in the order that `params` name, with these filters. The tenant counts, because
    /// the end of a list says something about its content.
    pub fn new(path: &str, params: &Params, filters: &[ListFilter], view: &TenantScope) -> Self {
        let mut digest = ListDigest::default();
        let order = ["order", "orderBy"].map(|name| {
            let values = params.values(name).map(str::trim);
            values.filter(|v| !v.is_empty()).collect::<Vec<_>>()
        });
        (path, order, filters, view.tenancy()).hash(&mut digest);
        // Absent from most lists, so that their tokens are the same as in the previous release.
        if let Some(at) = params.get("at") {
            at.hash(&mut digest);
        }
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
    /// Reads `continue`, for the list that these parameters name in `order`.
    ///
    /// # Errors
    ///
    /// It is not a token of this list, or there is also a page number.
    pub fn continuation(
        &self,
        list: &ListKey,
        order: &Order,
    ) -> Result<Option<Continuation>, ParamsError> {
        let Some(text) = self.get("continue") else {
            return Ok(None);
        };
        let found = if self.get("page").is_some() {
            Err("cannot be combined with page: it says itself where to begin")
        } else {
            Continuation::decode(text, list, order)
        };
        found.map(Some).map_err(|why| {
            let violation =
                Violation::new("continue", Constraint::Format, format!("continue {why}"));
            ParamsError::Invalid(violation.with_value(excerpt(text)).into())
        })
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;
    use hyperfleet_domain::ListFilterKind;

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
